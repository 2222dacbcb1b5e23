"""YAML and JSON text to a tree of text: dict, list, str, None.

Scalars stay as they were written (``NO``, ``1.10``, ``12:30``); the models turn them into numbers and booleans where a
field asks for one. Nothing here recurses on the input, runs a tag, or follows an alias.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

Tree: TypeAlias = Any  # None | str | list[Tree] | dict[str, Tree]
DEEPEST = 60
MOST_NODES = 100_000
LONGEST_YAML = 600_000  # characters; the pure scanner reads about 300 kB a second
LONGEST_JSON = 5_000_000
_NO_COMMENT = re.compile(r"[ \t]+#\S")  # ``issue #5``: YAML would cut the sentence there
_ENTRY = re.compile(r"\s*(?:- |[A-Za-z_][\w ]{0,40}:(?:\s|$))")  # a line that looks like a key or an item
RARE_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\[0abvefN_LP]")  # ``C:\Program``, ``\bword``: meant as backslashes
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class BadText(ValueError):
    """The text is not a tree. ``line`` and ``column`` count from 0; ``cut`` = it ends in the middle of something."""

    def __init__(
        self, message: str, *, line: int = 0, column: int = 0, cut: bool = False, began: int = -1, told: bool = False
    ) -> None:
        super().__init__(message)
        self.message, self.line, self.column, self.cut = message, line, column, cut
        self.told = told  # our own finding: a looser reading would hide it
        self.began = began if began >= 0 else line  # where the thing that failed starts

    def below(self, lines: int) -> BadText:
        """The same, told by the lines of a text in which this one begins ``lines`` lower."""
        moved = BadText(self.message, line=self.line + lines, column=self.column, cut=self.cut, told=self.told)
        moved.began = self.began + lines
        return moved

    def __str__(self) -> str:
        return f"line {self.line + 1}, column {self.column + 1}: {self.message}"


class Unfit(ValueError):
    """A tree that cannot be accepted as the wanted document. The text goes into the re-ask. ``cut`` = its end is missing."""

    def __init__(self, message: str, *, cut: bool = False) -> None:
        super().__init__(message)
        self.cut = cut


@dataclass(frozen=True, slots=True)
class Span:
    """Where a block mapping or sequence is written, so that it can be text again where a text is wanted."""

    text: str
    start: int
    end: int

    def written(self) -> str:
        """The lines as they stand, without the indent of the first."""
        column = self.start - (self.text.rfind("\n", 0, self.start) + 1)
        first, *rest = self.text[self.start : self.end].rstrip().split("\n")
        return "\n".join([first, *(line[column:] if not line[:column].strip() else line.lstrip() for line in rest)])


class Branch(dict[str, Tree]):
    """A mapping that remembers its text: ``- Rule: keep it`` may have been meant as a sentence."""

    span: Span | None = None


class Rows(list[Tree]):
    """A sequence that remembers its text."""

    span: Span | None = None


@dataclass(slots=True)
class Work:
    """What one reply may cost, bounded without a clock: ``left`` = characters that may still be scanned as YAML,
    ``tries`` = how often a part of the reply was tried as the document."""

    left: int = 1_000_000
    tries: int = 0

    def admit(self, size: int) -> None:
        """Before a text is scanned. Raises BadText when it is more than may still be scanned."""
        if size > LONGEST_YAML or size > self.left:
            raise BadText(f"too long to read as YAML ({size} characters)", told=True)


@dataclass(slots=True)
class _Open:
    """A mapping or sequence being filled."""

    mapping: bool
    start: int
    column: int
    flow: bool
    items: list[tuple[Tree, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Parsed:
    tree: Tree
    doubles: tuple[str, ...] = ()  # keys written twice with the same value


def from_yaml(text: str, work: Work) -> Parsed:
    """Raises BadText. One document; anchors, aliases, tags and rare escapes are refused; a repeated key must repeat its
    value."""
    work.admit(len(text))
    text = text if text.endswith("\n") else text + "\n"
    builder = _Builder(text)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            builder.feed(event)
    except MarkedYAMLError as error:
        raise _located(error, text) from error
    except (YAMLError, ValueError, OverflowError) as error:
        if isinstance(error, BadText):
            raise
        raise BadText(str(error).splitlines()[0] if str(error) else "not YAML") from error
    finally:
        work.left -= max(builder.at, 200)
    return builder.result()


def _located(error: MarkedYAMLError, text: str) -> BadText:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    began = error.context_mark.line if error.context_mark else line
    end = mark is not None and mark.index >= len(text.rstrip())
    return BadText(str(error.problem or error), line=line, column=column, cut=_unclosed(error, end), began=began)


def _unclosed(error: MarkedYAMLError, end: bool) -> bool:
    told = f"{error.context or ''} {error.problem or ''}"
    return end and ("quoted scalar" in told or "flow" in told or "end of stream" in told)


class _Builder:
    def __init__(self, text: str) -> None:
        self.text = text
        self.stack: list[_Open] = []
        self.done: list[Tree] = []
        self.doubles: list[str] = []
        self.nodes = 0
        self.at = 0  # how far the scanner has come

    def feed(self, event: Event) -> None:
        self.at = event.end_mark.index
        if isinstance(event, DocumentStartEvent) and self.done:
            raise self._bad("more than one YAML document", event)
        if isinstance(event, AliasEvent):
            raise self._bad("aliases are not allowed", event)
        if getattr(event, "anchor", None) is not None:
            raise self._bad("anchors are not allowed", event)
        if isinstance(event, ScalarEvent):
            self._put(self._scalar(event), event.start_mark.line)
        elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
            self._open(event)
        elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
            self._close(event)

    def result(self) -> Parsed:
        if not self.done:
            raise BadText("nothing in it")
        return Parsed(self.done[0], tuple(self.doubles))

    def _scalar(self, event: ScalarEvent) -> Tree:
        if event.tag is not None:
            raise self._bad("tags are not allowed", event)
        if event.end_mark.line > event.start_mark.line:
            self._one_text(event)
        if event.style == '"' and RARE_ESCAPE.search(self.text, event.start_mark.index, event.end_mark.index):
            raise self._bad("a backslash that starts no usual escape", event)
        if event.style is None and _NO_COMMENT.match(self.text, event.end_mark.index):
            raise self._bad("a # that belongs to the text", event)
        if event.style in ("'", '"') and self.text.startswith("#", event.end_mark.index):
            raise self._bad("a # right behind a quoted text", event)
        return None if event.style is None and event.value in _NULLS else str(event.value)

    def _one_text(self, event: ScalarEvent) -> None:
        """Several lines that YAML takes for one text although they look like more.

        A plain ``- a`` with a deeper ``- b`` below is a list whose indent drifted, or a text; a quote that swallows
        lines which stand no deeper than its own key was never closed.
        """
        written = self.text[event.start_mark.index : event.end_mark.index].split("\n")
        column = next((one.column for one in reversed(self.stack) if not one.flow), -1)
        for n, line in enumerate(written[1:], 1):
            if event.style is None and line.lstrip().startswith("- "):
                raise BadText("a list item in the middle of a sentence", line=event.start_mark.line + n)
            if event.style in ("'", '"') and _ENTRY.match(line) and len(line) - len(line.lstrip()) <= column:
                raise BadText("a quote that is not closed on its line", line=event.start_mark.line)

    def _open(self, event: MappingStartEvent | SequenceStartEvent) -> None:
        if event.tag is not None:
            raise self._bad("tags are not allowed", event)
        if len(self.stack) >= DEEPEST:
            raise self._bad(f"nested deeper than {DEEPEST}", event)
        mapping = isinstance(event, MappingStartEvent)
        mark = event.start_mark
        self.stack.append(_Open(mapping, mark.index, mark.column, bool(event.flow_style)))

    def _close(self, event: Event) -> None:
        top = self.stack.pop()
        value = self._mapping(top) if top.mapping else Rows(item for item, _ in top.items)
        if not top.flow:
            value.span = Span(self.text, top.start, event.end_mark.index)
        self._put(value, event.start_mark.line)

    def _put(self, value: Tree, line: int) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise BadText(f"more than {MOST_NODES} values", line=line)
        if self.stack:
            self.stack[-1].items.append((value, line))
        else:
            self.done.append(value)

    def _mapping(self, top: _Open) -> Branch:
        out = Branch()
        for (key, line), (value, _) in zip(top.items[::2], top.items[1::2], strict=False):
            if isinstance(key, (dict, list)):
                raise BadText("a key must be a word, not a list or mapping", line=line)
            name = "null" if key is None else key
            if top.flow and value is None and " " in name:
                raise BadText(f"a comma in a text without quotes, before {name!r}", line=line)
            if name in out and out[name] != value:
                raise BadText(f"the key {name!r} is there twice with different values", line=line)
            if name in out:
                self.doubles.append(name)
            out[name] = value
        return out

    def _bad(self, message: str, event: Event) -> BadText:
        return BadText(message, line=event.start_mark.line, column=event.start_mark.column)


class _Strict:
    """Object hook that collects harmless doubles and refuses the others."""

    def __init__(self) -> None:
        self.doubles: list[str] = []

    def __call__(self, pairs: Sequence[tuple[str, Tree]]) -> Tree:
        out = Branch()
        for key, value in pairs:
            if key in out and out[key] != value:
                raise BadText(f"the key {key!r} is there twice with different values", told=True)
            if key in out:
                self.doubles.append(key)
            out[key] = value
        return out


def _no_constant(word: str) -> Tree:
    raise BadText(f"{word} is not a JSON value")


def from_json(text: str, *, strict: bool = True) -> Parsed:
    """Raises BadText. Numbers stay as written. ``strict=False`` also takes raw line breaks inside strings."""
    if len(text) > LONGEST_JSON:
        raise BadText(f"too long ({len(text)} characters)")
    hook = _Strict()
    decoder = _decoder(hook, strict=strict)
    try:
        tree = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise _json_error(error, text) from error
    except RecursionError as error:
        raise BadText("nested too deep") from error
    return Parsed(text_of(tree), tuple(hook.doubles))


def from_json_stream(text: str) -> Parsed:
    """JSONL, or JSON objects one after another: a list of trees. Raises BadText."""
    if len(text) > LONGEST_JSON:
        raise BadText(f"too long ({len(text)} characters)")
    hook = _Strict()
    decoder = _decoder(hook, strict=True)
    out: list[Tree] = []
    at = _skip(text, 0)
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            out.append(text_of(value))
            at = _skip(text, at)
    except json.JSONDecodeError as error:
        raise _json_error(error, text) from error
    except RecursionError as error:
        raise BadText("nested too deep") from error
    return Parsed(out, tuple(hook.doubles))


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _decoder(hook: _Strict, *, strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=hook, parse_float=str, parse_int=str, parse_constant=_no_constant, strict=strict
    )


def _json_error(error: json.JSONDecodeError, text: str) -> BadText:
    cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    return BadText(error.msg, line=error.lineno - 1, column=error.colno - 1, cut=cut)


def text_of(value: object) -> Tree:
    """A JSON value as a tree of text. Raises BadText when it nests too deep."""
    return _text_of(value, 0)


def _text_of(value: object, depth: int) -> Tree:
    if depth > DEEPEST:
        raise BadText(f"nested deeper than {DEEPEST}")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return Branch((str(k), _text_of(v, depth + 1)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return [_text_of(v, depth + 1) for v in value]
    return value if value is None or isinstance(value, str) else str(value)
