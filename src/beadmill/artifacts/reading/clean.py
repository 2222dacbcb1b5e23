"""First stage: take terminal noise off, notice an echo of the prompt. Raw text is kept by the caller."""

from __future__ import annotations

import re
from collections.abc import Sequence

from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.tree import Tree

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # OSC: titles, links, clipboard
    r"|\x1b[P^_X][^\x1b]{0,4096}\x1b\\"  # DCS, PM, APC, SOS
    r"|\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI
    r"|\x1b[ -/]{0,8}[0-~]"  # two-byte escapes
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
)
_RIGHT = re.compile(r"\x1b\[(\d{0,3})C")  # the cursor goes right: how a screen draws spaces
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff\ufeff]")
_HALF = re.compile(r"[\ud800-\udfff]")  # half of a character
_CONFLICT = re.compile(r"^(?:<{7} |>{7} )", re.MULTILINE)
_LINE_END = re.compile(r"\r+\n|\r")
HEADER = "Beadmill task:"  # first line of every brief
CLOSING = "Answer in exactly this format."  # last section of every brief: Shape.format_help
_MARKERS = (HEADER, CLOSING, "## Reply format", "Write nothing before or after it:")


def clean(text: str, notes: Notes) -> str:
    """ANSI escapes, BOM, NUL and other control characters off; line ends are ``\\n``; half a character is U+FFFD."""
    plain = _without_escapes(text)
    if plain != text:
        notes.fixed("terminal escapes removed")
    lines = _LINE_END.sub("\n", plain) if "\r" in plain else plain
    out = _CONTROLS.sub("", lines)
    out = out if out.isascii() else _HALF.sub("\ufffd", out)
    if out != lines:
        notes.fixed("control characters removed")
    return out


def _without_escapes(text: str) -> str:
    return (
        _ESCAPES.sub("", _RIGHT.sub(lambda found: " " * int(found[1] or 1), text))
        if "\x1b" in text or "\x9b" in text
        else text
    )


def tidy(tree: Tree, notes: Notes) -> Tree:
    """The same for texts in which JSON or YAML spelled such characters (``\\u0000``). Mappings and lists stay the same
    objects."""
    odd = _tidied(tree)
    if odd:
        notes.fixed("characters that no text may hold replaced", odd[0])
    return tree if not isinstance(tree, str) else _proper(tree)


def _tidied(tree: Tree) -> list[str]:
    """Replaces in place; gives what was replaced."""
    found: list[str] = []
    pairs = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    for key, value in pairs:
        if isinstance(value, str) and (text := _proper(value)) != value:
            tree[key] = text
            found.append(text)
        elif isinstance(value, (dict, list)):
            found += _tidied(value)
    return found


def _proper(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return _HALF.sub("\ufffd", _CONTROLS.sub("\ufffd", _without_escapes(text)))


def conflict(text: str) -> int | None:
    """The first line, from 0, that begins like a conflict marker of Git."""
    found = _CONFLICT.search(text) if "<<<<<<<" in text or ">>>>>>>" in text else None
    return text.count("\n", 0, found.start()) if found else None


def echoes(text: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Which lines of the prompt's scaffolding the reply repeats at the start of a line. Two are an echo."""
    markers = [m.strip() for m in (*_MARKERS, *more) if m.strip()]
    return tuple(m for m in markers if m in text and re.search(rf"^[ \t]*{re.escape(m)}", text, re.MULTILINE))
