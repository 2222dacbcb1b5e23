"""One candidate to a tree: JSON when it looks like JSON, else YAML; with ``repair`` also what repairs can save."""

from __future__ import annotations

import re

from beadmill.artifacts.reading.clean import conflict
from beadmill.artifacts.reading.json_fix import left_open, repair_json
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.repairs import repair_yaml
from beadmill.artifacts.reading.tree import BadText, Parsed, Tree, Work, from_json, from_json_stream, from_yaml
from beadmill.artifacts.reading.vocabulary import Vocabulary


def parse(text: str, *, form: str, work: Work, notes: Notes, words: Vocabulary, repair: bool) -> Tree:
    """Raises BadText."""
    marked = conflict(text)
    if marked is not None:
        raise BadText("a conflict marker of Git", line=marked, told=True)
    if not text.lstrip().startswith(("{", "[")):
        parsed = _yaml(text, work, notes, words, repair=repair)
    elif form == "jsonl":
        parsed = _lines(text, notes) if repair else _stream(text)
    else:
        parsed = _json(text, work, notes, repair=repair)
    for key in parsed.doubles:
        notes.fixed("the same key and value written twice", key)
    return parsed.tree


def _yaml(text: str, work: Work, notes: Notes, words: Vocabulary, *, repair: bool) -> Parsed:
    try:
        return from_yaml(text, work)
    except BadText as error:
        if _ends_in_a_key(text, words):
            raise BadText(error.message, line=error.line, column=error.column, cut=True) from error
        if not repair:
            raise
        return repair_yaml(text, words, work, notes, first=error)


def _ends_in_a_key(text: str, words: Vocabulary) -> bool:
    """Whether the last line is the beginning of a known key and nothing else: the reply stopped there."""
    last = text.rstrip().rpartition("\n")[2]
    found = re.fullmatch(r"\s*(?:- )*([A-Za-z]\w{1,60})", last)
    return found is not None and words.begins(found[1])


def _json(text: str, work: Work, notes: Notes, *, repair: bool) -> Parsed:
    """JSON, else YAML's own flow style (single quotes, comma at the end), else repaired JSON."""
    try:
        return from_json(text)
    except BadText as error:
        first = error
    if first.told:
        raise first
    try:
        parsed = from_json(text, strict=False)
        notes.fixed("line breaks inside JSON texts kept")
    except BadText:
        parsed = _flow(text, work, notes, first, repair=repair)
    return parsed


def _flow(text: str, work: Work, notes: Notes, first: BadText, *, repair: bool) -> Parsed:
    try:
        parsed = from_yaml(text, work)
    except BadText as error:
        if repair:
            return repair_json(text, notes, first)
        cut = first.cut and left_open(text)
        raise BadText(first.message, line=first.line, column=first.column, cut=cut) from error
    notes.fixed("JSON read by the rules of YAML", str(first))
    return parsed


def _stream(text: str) -> Parsed:
    """JSONL, one object after another, or one list of them."""
    parsed = from_json_stream(text)
    rows = parsed.tree
    return Parsed(rows[0], parsed.doubles) if len(rows) == 1 and isinstance(rows[0], list) else parsed


def _lines(text: str, notes: Notes) -> Parsed:
    """Line by line: text before the first and after the last object goes, a damaged line is repaired or fails."""
    lines = [(n, line.strip().rstrip(",")) for n, line in enumerate(text.split("\n"))]
    marks = [at for at, (_, line) in enumerate(lines) if line.startswith("{")]
    if not marks:
        raise BadText("no JSON object at the start of any line")
    if any(line for _, line in (*lines[: marks[0]], *lines[marks[-1] + 1 :])):
        notes.fixed("text around the JSON lines removed")
    out: list[Tree] = []
    doubles: list[str] = []
    for n, line in lines[marks[0] : marks[-1] + 1]:
        if line:
            parsed = _line(line, n, notes)
            out.append(parsed.tree)
            doubles += parsed.doubles
    return Parsed(out, tuple(doubles))


def _line(line: str, n: int, notes: Notes) -> Parsed:
    try:
        return from_json(line)
    except BadText as error:
        first = BadText(error.message, line=n, column=error.column, cut=error.cut)
    return repair_json(line, notes, first)
