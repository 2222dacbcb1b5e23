"""Who may do what. Checked in the operation, never in the door."""

from __future__ import annotations

from beadmill.domain.values import Actor, Permission
from beadmill.errors import Refused

OWNER = "owner"  # the local person: signed in by the one-time link, or running the CLI as the same system user

# A wider permission brings the narrower ones with it.
IMPLIES: dict[Permission, frozenset[Permission]] = {
    Permission.READ: frozenset({Permission.READ}),
    Permission.PLAN: frozenset({Permission.READ, Permission.PLAN}),
    Permission.DECIDE: frozenset({Permission.READ, Permission.DECIDE}),
    Permission.RUN: frozenset({Permission.READ, Permission.RUN}),
    Permission.ADMIN: frozenset(Permission),
}


def may(actor: Actor, permission: Permission) -> bool:
    """No scopes = the local owner or the system, who may do everything; a token has what it was given."""
    if actor.scopes is None:
        return True
    return any(permission in IMPLIES[Permission(scope)] for scope in actor.scopes)


def require(actor: Actor, permission: Permission) -> None:
    if not may(actor, permission):
        raise Refused(
            f"{actor.name} may not {permission.value} here",
            code="PERMISSION",
            details={"needs": permission.value, "has": sorted(actor.scopes or ())},
            kept="nothing was changed",
            next=f"use a token with the scope {permission.value}, or sign in as the owner",
        )
