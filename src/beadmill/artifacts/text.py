"""Documents as people read and edit them: YAML, and JSON lines for beads."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from beadmill.artifacts.base import KINDS, Document
from beadmill.artifacts.beads import Bead, Beads
from beadmill.artifacts.problems import (
    MOST,
    Checked,
    Finding,
    Path,
    Problem,
    accepted,
    fitted,
    meaning,
    of_tree,
    placed,
    unplaced,
)
from beadmill.artifacts.yaml import check_yaml, markers, to_yaml
from beadmill.errors import Invalid

LIMIT: Final = 1_000_000  # bytes of a text that a person edits


class _Odd(ValueError):
    """JSON that Python reads and nobody means."""


def as_text(kind: str, data: bytes) -> str:
    """What people edit."""
    doc = KINDS[kind].parse(data)
    return doc.jsonl() if isinstance(doc, Beads) else to_yaml(doc)


def readable(kind: str, data: bytes) -> str:
    """What people compare: YAML, for beads too, since one line of JSON is a whole bead."""
    return to_yaml(KINDS[kind].parse(data))


def from_text(kind: str, text: str) -> Document:
    """Raises Unprocessable with every problem, Invalid for a kind nobody edits."""
    return accepted(check(kind, text))


def from_value(kind: str, value: Any) -> Document:
    """The same from JSON. Raises the same."""
    return accepted(check_value(kind, value))


def check(kind: str, text: str) -> Checked:
    """Every problem of a text. Raises Invalid for a kind nobody edits."""
    _editable(kind)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > LIMIT:
        return Checked(None, (Problem(f"the text has {size:,} bytes; at most {LIMIT:,} can be saved"),))
    if kind == Beads.kind and _by_line(text):
        return _check_lines(text)
    return check_yaml(kind, text)


def check_value(kind: str, value: Any) -> Checked:
    """Every problem of JSON, by its path. Raises Invalid for a kind nobody edits."""
    model = _editable(kind)
    if not isinstance(value, dict):
        return Checked(None, (Problem(f"a {kind} is a mapping"),))
    document, found = fitted(model, value)
    found += [*of_tree(value), *(meaning(document) if document is not None else ())]
    return Checked(None if found else document, unplaced(found))


def _editable(kind: str) -> type[Document]:
    if kind not in KINDS:
        raise Invalid(f"documents of the kind {kind} cannot be edited", code="KIND")
    return KINDS[kind]


# --- beads, one a line --------------------------------------------------------------------------------------------
def _by_line(text: str) -> bool:
    """Not YAML with its ``beads:``, and not one JSON object of all."""
    if re.search(r"(?m)^beads:", text):
        return False
    try:
        return "beads" not in json.loads(text)
    except (ValueError, RecursionError):
        return True


def _check_lines(text: str) -> Checked:
    lines = text.split("\n")
    damaged: list[Problem] = list(markers(lines))
    at: list[int] = []  # the line of each bead that could be read, from 1
    raw: list[Any] = []
    for n, line in enumerate(lines, 1):
        if not line.strip() or any(p.line == n for p in damaged):
            continue
        value = _loaded(line, n)
        if isinstance(value, Problem):
            damaged.append(value)
        else:
            at.append(n)
            raw.append(value)
    return _check_beads(lines, damaged, at, raw)


def _check_beads(lines: Sequence[str], damaged: Sequence[Problem], at: Sequence[int], raw: Sequence[Any]) -> Checked:
    def place(path: Path) -> tuple[int, int]:
        return at[int(path[1])], 1

    beads, found = [], list[Finding]()
    for n, value in enumerate(raw):
        bead, wrong = fitted(Bead, value, ("beads", n))
        beads += [bead] if bead is not None else []
        found += wrong
    found += of_tree({"beads": raw})
    whole = Beads(beads=tuple(beads)) if beads and len(beads) == len(raw) and not damaged else None
    found += meaning(whole) if whole is not None else ()
    problems = (*damaged, *placed(found, place, lines))
    if not (problems or raw):
        problems = (Problem("there is no bead in it", 1, 1),)
    return Checked(None if problems else whole, tuple(sorted(problems, key=lambda p: (p.line, p.column)))[:MOST])


def _loaded(line: str, n: int) -> dict[str, Any] | Problem:
    try:
        value = json.loads(line, object_pairs_hook=_once, parse_constant=_refuse)
    except _Odd as error:
        return Problem(str(error), n, 1, line)
    except json.JSONDecodeError as error:
        return Problem(f"not JSON: {error.msg}", n, error.colno, line)
    except RecursionError:
        return Problem("not JSON: nested too deeply", n, 1, line)
    return value if isinstance(value, dict) else Problem("not a JSON object", n, 1, line)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    double = next((key for key in keys if keys.count(key) > 1), None)
    if double is not None:
        raise _Odd(f"the key {double} is written twice")
    return dict(pairs)


def _refuse(word: str) -> None:
    raise _Odd(f"{word} is no JSON")
