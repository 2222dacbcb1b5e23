"""JSON that a strict parser refuses: json_repair, watched. It may set quotes, commas and brackets; it may not lose, add
or change a word, and it may not close what the reply left open at its end: that is a cut reply."""

from __future__ import annotations

import json
import re

import json_repair

from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.tree import BadText, Parsed, text_of

LONGEST = 300_000  # characters: json_repair is slow on text that is not JSON at all
_PAIRS = {"}": "{", "]": "["}
_WORD = re.compile(r"[^\W_]+")


def repair_json(text: str, notes: Notes, first: BadText) -> Parsed:
    """Raises BadText: ``first`` when nothing helps."""
    if left_open(text):
        raise BadText(first.message, line=first.line, column=first.column, cut=True)
    if len(text) > LONGEST:
        raise first
    try:
        value = json_repair.loads(text, skip_json_loads=True)
        tree = text_of(value)
        again = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise first from error
    if not isinstance(tree, (dict, list)) or not _same(text, again):
        raise first
    notes.fixed("JSON repaired", str(first))
    return Parsed(tree)


def left_open(text: str) -> bool:
    """Whether brackets are still open at the end. A stray quote confuses the walk, so the plain count must agree."""
    stack: list[str] = []
    inside = escaped = False
    for sign in text:
        if inside:
            inside = escaped or sign != '"'
            escaped = sign == "\\" and not escaped
        elif sign == '"':
            inside = True
        elif sign in "{[":
            stack.append(sign)
        elif sign in _PAIRS and stack and stack[-1] == _PAIRS[sign]:
            stack.pop()
    opened = text.count("{") + text.count("[")
    return (bool(stack) or inside) and opened > text.count("}") + text.count("]")


def _same(before: str, after: str) -> bool:
    return _words(before) == _words(after)


def _words(text: str) -> list[str]:
    """Letters and digits in order; escapes read as what they stand for, Python's None/True/False as JSON's."""
    plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
    plain = re.sub(r"\\[nrtbf]", " ", plain)
    words = _WORD.findall(plain)
    return [{"None": "null", "True": "true", "False": "false"}.get(word, word) for word in words]
