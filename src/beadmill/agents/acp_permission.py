"""Answers to an agent that asks before it acts: by the access of its seat alone. Pure, standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from beadmill.domain.values import Access, Json

_LOOKS: Final = frozenset({"read", "search", "think"})
_PATHS: Final = ("path", "file_path", "filePath", "filepath", "fileName", "abs_path", "cwd", "workdir")
_ALLOW: Final = ("allow_once", "allow_always")
_REJECT: Final = ("reject_once", "reject_always")


def allowed(call: Mapping[str, Json], access: Access, *, cwd: Path, roots: Sequence[Path]) -> bool:
    """``call`` is the tool call of a permission request. Whatever the access, it stays inside ``roots``."""
    kind = call.get("kind") or "other"
    if kind == "fetch":
        return access is Access.ONLINE
    if kind not in _LOOKS and access not in (Access.WRITE, Access.ONLINE):
        return False
    return all(any((cwd / path).resolve().is_relative_to(r.resolve()) for r in roots) for path in _paths(call))


def outcome(options: Json, *, allow: bool) -> Json:
    """The answer in the protocol's words: the option that decides this one call, where there is one."""
    offered = {str(o.get("kind")): o.get("optionId") for o in options or () if isinstance(o, dict)}
    chosen = next((offered[kind] for kind in (_ALLOW if allow else _REJECT) if kind in offered), None)
    if chosen is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": chosen}}


def _paths(call: Mapping[str, Json]) -> Iterator[str]:
    """Every path that the call names. What a shell command touches is not among them: only a sandbox sees that."""
    given = call.get("rawInput")
    for row in (*(call.get("locations") or ()), *(call.get("content") or ()), given):
        if isinstance(row, dict):
            yield from (row[key] for key in _PATHS if isinstance(row.get(key), str) and row[key])
