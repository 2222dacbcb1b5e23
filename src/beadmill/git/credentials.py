"""A sign-in for git over http(s), when the user's own git has none: handed over in the environment of one command.

``keep`` tells where sign-ins come from. git asks its helpers in order, the user's first, ours last; ours is a line of
shell that prints two variables. So a token stands in no argv, no address and no file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

Lookup = Callable[[str], Awaitable[tuple[str, str] | None]]  # address of a remote → user and password
USER: Final = "BEADMILL_GIT_USER"
PASSWORD: Final = "BEADMILL_GIT_PASSWORD"  # noqa: S105 - the name of a variable
HELPER: Final = (
    f'!f() {{ test "$1" = get && printf "username=%s\\npassword=%s\\n" "${USER}" "${PASSWORD}"; }}; f'  # git runs it
)

_lookup: list[Lookup] = []


def keep(lookup: Lookup | None) -> None:
    """For this whole process; None = only the user's own sign-ins."""
    _lookup[:] = [] if lookup is None else [lookup]


def wanted() -> bool:
    return bool(_lookup)


async def variables(url: str) -> dict[str, str]:
    """For the environment of a git command that talks to ``url``; empty when nothing is known."""
    parts = urlsplit(url)
    if not _lookup or parts.scheme not in ("http", "https"):
        return {}
    found = await _lookup[0](url)
    if found is None:
        return {}
    origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"credential.{origin}.helper",
        "GIT_CONFIG_VALUE_0": HELPER,
        USER: found[0],
        PASSWORD: found[1],
    }
