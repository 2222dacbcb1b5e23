"""Lines of YAML, looked at one by one: indent, dash, key, value, comment. Pure string work for repairs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LINE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<dash>(?:-[ ]+)*)(?:(?P<key>[\"']?[A-Za-z_][\w \-/]{0,60}?[\"']?)[ ]*:(?=[ ]|$)[ ]*)?(?P<rest>.*)$"
)
_COMMENT = re.compile(r"\s+#(?:\s.*)?$")
_BLOCK = re.compile(r"(?:^|[ :])[|>][+-]?[1-9]?[+-]?\s*(?:#.*)?$")


@dataclass(frozen=True, slots=True)
class Line:
    """``head`` is everything before the value, ``value`` without ``comment``; ``column`` is where the key or value starts."""

    indent: int
    dash: str
    key: str
    head: str
    value: str
    comment: str

    @property
    def column(self) -> int:
        return self.indent + len(self.dash)

    @property
    def blank(self) -> bool:
        return not (self.dash or self.key or self.value or self.comment)

    def with_value(self, value: str) -> str:
        space = "" if not self.head or self.head.endswith((" ", "\t")) else " "
        return f"{self.head}{space}{value}{self.comment}"


def split(text: str) -> Line:
    found = _LINE.match(text)
    assert found is not None  # every part is optional
    rest = found["rest"]
    comment = "" if rest[:1] in "\"'" else (m[0] if (m := _COMMENT.search(rest)) else "")
    value = rest[: len(rest) - len(comment)].rstrip()
    head = text[: found.start("rest")]
    key = (found["key"] or "").strip("\"'")
    return Line(len(found["indent"]), found["dash"], key, head, value, comment)


def quoted(value: str) -> str:
    """A double-quoted YAML scalar with exactly this text."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'


def is_quoted(value: str) -> bool:
    """Whether the whole value is one quoted scalar."""
    return bool(re.fullmatch(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'', value))


def opens_block(text: str) -> bool:
    """Whether the value of this line is a block scalar (``|`` or ``>``)."""
    return bool(_BLOCK.search(text))


def opaque(lines: Sequence[str]) -> frozenset[int]:
    """Numbers of the lines inside block scalars: text that no repair may touch."""
    inside: set[int] = set()
    border = -1
    for n, text in enumerate(lines):
        indent = len(text) - len(text.lstrip(" "))
        if border >= 0 and (not text.strip() or indent > border):
            inside.add(n)
            continue
        border = -1
        if opens_block(text):
            line = split(text)
            border = line.column if line.key else max(line.indent, line.column - 2)
    return frozenset(inside)


def children(lines: Sequence[str], at: int, indent: int) -> int:
    """The first line after ``at`` that is not blank and not deeper than ``indent``."""
    n = at + 1
    while n < len(lines) and (not lines[n].strip() or len(lines[n]) - len(lines[n].lstrip(" ")) > indent):
        n += 1
    while n > at + 1 and not lines[n - 1].strip():
        n -= 1
    return n
