"""The SOPs that come with Beadmill. Read-only: a project edits its own copy."""

from __future__ import annotations

from importlib.resources import files

from beadmill.errors import NotFound

NAMES = ("deliver", "deliver-lite", "hello")


def builtin(name: str) -> str:
    """The YAML text. Raises NotFound."""
    if name not in NAMES:
        raise NotFound(f"there is no built-in SOP {name!r}", next=f"Built in are: {', '.join(NAMES)}.")
    return (files("beadmill.sops") / f"{name}.yaml").read_text(encoding="utf-8")
