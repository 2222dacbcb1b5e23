"""First stage: take terminal noise off, notice an echo of the prompt. Raw text is kept by the caller."""

from __future__ import annotations

import re
from collections.abc import Sequence

from beadmill.artifacts.reading.notes import Notes

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # OSC: titles, links, clipboard
    r"|\x1b[P^_X][^\x1b]{0,4096}\x1b\\"  # DCS, PM, APC, SOS
    r"|\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI
    r"|\x1b[ -/]{0,8}[0-~]"  # two-byte escapes
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff\ufeff]")
HEADER = "Beadmill task:"  # first line of every brief
CLOSING = "Answer in exactly this format."  # last section of every brief: Shape.format_help
_MARKERS = (HEADER, CLOSING, "## Reply format", "Write nothing before or after it:")


def clean(text: str, notes: Notes) -> str:
    """ANSI escapes, BOM, NUL and other control characters off; line ends are ``\\n``."""
    plain = _ESCAPES.sub("", text)
    if plain != text:
        notes.fixed("terminal escapes removed")
    out = _CONTROLS.sub("", plain.replace("\r\n", "\n").replace("\r", "\n"))
    if _CONTROLS.search(plain):
        notes.fixed("control characters removed")
    return out


def echoes(text: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Which lines of the prompt's scaffolding the reply repeats at the start of a line. Two are an echo."""
    markers = [m.strip() for m in (*_MARKERS, *more) if m.strip()]
    return tuple(m for m in markers if re.search(rf"^[ \t]*{re.escape(m)}", text, re.MULTILINE))
