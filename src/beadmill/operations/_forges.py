"""Which forge a project has: what a person says, else what its remote says by itself."""

from __future__ import annotations

from pathlib import Path

from beadmill.errors import Invalid, Unprocessable
from beadmill.forges import address, registry
from beadmill.git import remotes
from beadmill.git.run import discover


async def chosen(path: str, remote: str, *, forge: str, url: str) -> str:
    """What a project keeps. Raises Invalid for what is no forge, Unprocessable when nobody can tell: a host is never
    asked what it is."""
    web = address.checked_url(url)
    if forge and forge not in address.KINDS:
        raise Invalid(f"there is no forge {forge!r} here", code="FORGE", next=f"known: {', '.join(address.KINDS)}")
    if forge:
        return registry.joined(forge, "" if forge in registry.PLACELESS else web)
    there = await remotes.url_of(await discover(Path(path)), remote)
    kind = address.kind_of(web or there)
    if kind:
        return registry.joined(kind, web)
    found = address.parse(there)
    raise Unprocessable(
        f"nobody said what runs at {found.host if found else there}",
        code="FORGE_UNKNOWN",
        details={"host": found.host if found else ""},
        kept="nothing was changed",
        next=f"name its forge: --forge {', '.join(kind for kind in address.KINDS if kind not in registry.PLACELESS)}",
    )
