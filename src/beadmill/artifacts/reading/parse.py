"""One candidate to a tree: JSON when it looks like JSON, else YAML; with ``repair`` also what repairs can save."""

from __future__ import annotations

from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.tree import BadText, Parsed, Tree, Work, from_json, from_json_stream, from_yaml


def parse(text: str, *, form: str, work: Work, notes: Notes, keys: frozenset[str], repair: bool) -> Tree:
    """Raises BadText."""
    parsed = _strict(text, form, work)
    for key in parsed.doubles:
        notes.fixed("the same key and value written twice", key)
    return parsed.tree


def _strict(text: str, form: str, work: Work) -> Parsed:
    looks_json = text.lstrip().startswith(("{", "["))
    if form == "jsonl" and looks_json:
        try:
            parsed = from_json_stream(text)
        except BadText:
            parsed = from_json(text)
        rows = parsed.tree
        single = isinstance(rows, list) and len(rows) == 1
        return Parsed(rows[0], parsed.doubles) if single and isinstance(rows[0], list) else parsed
    if looks_json:
        try:
            return from_json(text)
        except BadText as error:
            if error.cut:
                raise
    return from_yaml(text, work)
