"""Signing in on this machine: a one-time link from the CLI becomes a browser session. Tokens are stored hashed."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.domain.values import Actor, Permission
from beadmill.errors import Refused
from beadmill.operations import views
from beadmill.operations.ports import Ports
from beadmill.operations.rules import OWNER, require
from beadmill.store import tables as t
from beadmill.store.db import Tx, stamp

LINK = timedelta(minutes=5)
SESSION = timedelta(days=30)
log = t.logins.c


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


async def link(ports: Ports, *, actor: Actor) -> views.LinkView:
    """A token for one sign-in within five minutes. It goes into the fragment of a URL, so no server ever logs it."""
    require(actor, Permission.ADMIN)
    token = secrets.token_urlsafe(32)
    until = await ports.store.write(lambda tx: _issue(tx, token, once=True, lasts=LINK))
    return views.LinkView(token=token, expires=until)


async def enter(ports: Ports, token: str) -> str:
    """Spends a link and returns the session's token. Raises Refused when it is unknown, spent or too old."""
    session = secrets.token_urlsafe(32)

    def spend(tx: Tx) -> bool:
        fresh = (log.token_hash == hashed(token)) & (log.once == 1) & (log.expires > tx.now)
        if tx.run(sa.delete(t.logins).where(fresh)).rowcount != 1:
            return False
        tx.run(sa.delete(t.logins).where(log.expires <= tx.now))
        _issue(tx, session, once=False, lasts=SESSION)
        return True

    if not await ports.store.write(spend):
        raise Refused("this link was used already, or is too old", code="LINK_SPENT", next="run: beadmill open")
    return session


async def leave(ports: Ports, session: str) -> None:
    await ports.store.write(lambda tx: tx.run(sa.delete(t.logins).where(log.token_hash == hashed(session))))


def _issue(tx: Tx, token: str, *, once: bool, lasts: timedelta) -> str:
    until = stamp(tx.moment + lasts)
    row = {"token_hash": hashed(token), "once": int(once), "created": tx.now, "expires": until}
    tx.run(sa.insert(t.logins).values(user_id=_owner(tx), **row))
    return until


def _owner(tx: Tx) -> int:
    found = tx.run(sa.select(t.users.c.id).where(t.users.c.name == OWNER)).scalar()
    if found is not None:
        return int(found)
    made = sa.insert(t.users).values(name=OWNER, admin=1, created=tx.now).returning(t.users.c.id)
    return int(tx.run(made).scalar_one())


async def of_session(ports: Ports, session: str) -> Actor | None:
    """Who a cookie stands for; None when it is unknown or too old."""
    now = stamp(ports.clock())

    def read(conn: Connection) -> Actor | None:
        query = (
            sa.select(t.users.c.name)
            .join(t.logins, log.user_id == t.users.c.id)
            .where(log.token_hash == hashed(session), log.once == 0, log.expires > now)
        )
        name = conn.execute(query).scalar()
        return Actor("user", name, "web") if name else None

    return await ports.store.read(read)


async def of_token(ports: Ports, token: str) -> Actor | None:
    """Who an API token stands for, with its scopes; None when it is unknown or revoked."""
    a = t.api_tokens.c

    def read(conn: Connection) -> Actor | None:
        query = sa.select(a.name, a.scopes).where(a.token_hash == hashed(token), a.revoked.is_(None))
        row = conn.execute(query).first()
        return Actor("user", row.name, "api", tuple(row.scopes)) if row else None

    return await ports.store.read(read)
