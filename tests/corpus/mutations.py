"""Damage of every kind the reports tell of, at random places; and which words of a document its reply must account for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, get_args

from pydantic import BaseModel

from beadmill.artifacts.council import Change
from beadmill.artifacts.reading.shapes import SHAPES

SIGNS = [
    ": ",
    ":",
    "#",
    " #",
    "- ",
    "-",
    "'",
    '"',
    "\\",
    "`",
    "@",
    "*",
    "&",
    "!",
    "|",
    ">",
    "{",
    "}",
    "[",
    "]",
    ",",
    "%",
]
BYTES = [
    "\t",
    "\r",
    "\0",
    "\x1b[2C",
    "\x1b]0;t\x07",
    "\ud800",
    "\ufeff",
    "\u2028",
    "\xa0",
    "é",
    "\n",
    "\n\n",
    "---\n",
    "?",
]
WRAPS = [
    ("```yaml\n", "```\n"),
    ("~~~\n", "~~~\n"),
    ("<output>\n", "</output>\n"),
    ("Well, here it is:\n\n", "\nDone!\n"),
    ("[assistant] ", ""),
    ("{", "}"),
    ("[", "]"),
    ('{"result": "', '"}'),
]
Mutation = Callable[[str, Random], str]


def cut(text: str, rng: Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


def signs(text: str, rng: Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(SIGNS + BYTES) + text[at + rng.choice([0, 0, 1, 2]) :]


def quotes(text: str, rng: Random) -> str:
    found = [m.start() for m in re.finditer("[\"']", text)]
    at = rng.choice(found) if found else rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(["", "'", '"', '\\"', '""', "''"]) + text[at + 1 :]


def _on_lines(change: Callable[[list[str], int, Random], list[str]]) -> Mutation:
    def run(text: str, rng: Random) -> str:
        lines = text.split("\n")
        return "\n".join(change(lines, rng.randrange(len(lines)), rng))

    return run


def _drop(lines: list[str], n: int, rng: Random) -> list[str]:
    return lines[:n] + lines[n + rng.choice([1, 1, 2, 5]) :]


def _twice(lines: list[str], n: int, rng: Random) -> list[str]:
    size = rng.choice([1, 1, 3, 8])
    return lines[: n + size] + lines[n : n + size] + lines[n + size :]


def _indent(lines: list[str], n: int, rng: Random) -> list[str]:
    size, by = rng.choice([1, 1, 2, 6]), rng.choice([-2, -1, 1, 2, 4])
    moved = [
        " " * by + one if by > 0 else one[min(-by, len(one) - len(one.lstrip(" "))) :] for one in lines[n : n + size]
    ]
    return lines[:n] + moved + lines[n + size :]


def _tab(lines: list[str], n: int, _rng: Random) -> list[str]:
    return [*lines[:n], "\t" + lines[n].lstrip(" "), *lines[n + 1 :]]


def _swap(lines: list[str], n: int, rng: Random) -> list[str]:
    other = rng.randrange(len(lines))
    lines = list(lines)
    lines[n], lines[other] = lines[other], lines[n]
    return lines


def _wrap_line(lines: list[str], n: int, _rng: Random) -> list[str]:
    first, _, rest = lines[n].rpartition(" ")
    return [*lines[:n], first, rest, *lines[n + 1 :]]


def wrap(text: str, rng: Random) -> str:
    before, after = rng.choice(WRAPS)
    return before + text + after


MUTATIONS: tuple[Mutation, ...] = (
    cut,
    signs,
    signs,
    quotes,
    wrap,
    *map(_on_lines, (_drop, _twice, _indent, _tab, _swap, _wrap_line)),
)


def mutated(text: str, rng: Random) -> str:
    for _ in range(rng.randint(1, 4)):
        text = rng.choice(MUTATIONS)(text, rng)
    return text


# Values that are Beadmill's own: words of closed lists, names of sections, ids it gives, the two options of yes_no.
GIVEN_IDS = re.compile(r"(Q\d{2,}|CFU\d+|QFF1|EPIC-\d+|US-\d+-\d+|(bead|step|probe)-\d+|opt\d+)")
WORD = re.compile(r"\w+")
YES_NO = frozenset({"yes", "no", "Yes", "No"})
ITEM_TYPES = frozenset({"question", "epic", "user_story", "bead", "section"})


def _literals(annotation: Any) -> Iterator[str]:
    for one in get_args(annotation):
        if isinstance(one, str):
            yield one
        yield from _literals(one)


def _closed_words() -> frozenset[str]:
    found: set[str] = set()
    todo: list[type[BaseModel]] = [Change, *(shape.model for shape in SHAPES.values())]
    for model in todo:
        for name, info in model.model_fields.items():
            found |= {name, *_literals(info.annotation)}
            found |= {info.default} if isinstance(info.default, str) else set()
            parts = [info.annotation, *get_args(info.annotation)]
            todo += [p for p in parts if isinstance(p, type) and issubclass(p, BaseModel) and p not in todo]
    return frozenset(found | {".", "posix", "process", "shell"})


OWN = _closed_words() | YES_NO | ITEM_TYPES


def words(text: str) -> str:
    """The words of a text in order, between single spaces."""
    return " " + " ".join(WORD.findall(text.casefold())) + " "


def sources(reply: str) -> list[str]:
    """The words of a reply as it stands, without its escapes, and without lines that are only a fence or a tag."""
    reply = reply.replace("\x1b[2C", "  ")
    plain = re.sub(r"\x1b\][^\x07]*\x07|\x1b\[\d*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\ufeff]", "", reply)
    bare = re.sub(r"(?m)^\s*(?:`{3,}\S*|~{3,}\S*|</?\w[\w.-]*\s*/?>)\s*$", "", plain)
    found = [plain, bare]
    found += [
        re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), re.sub(r"\\[ntr]", " ", one))
        for one in (plain, bare)
    ]
    return [words(one) for one in found]


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)


def invented(value: Any, reply: str, known: str) -> list[str]:
    """Texts of a document that stand neither in the reply nor in what was ``known`` (words of the context)."""
    given = [*sources(reply), known]
    found = [leaf for leaf in leaves(value) if leaf not in OWN and not GIVEN_IDS.fullmatch(leaf)]
    return [leaf for leaf in found if not any(_said(leaf, one) for one in given)]


def _said(leaf: str, source: str) -> bool:
    numbered = re.sub(r"-\d+$", "", leaf)  # a repeated bead id gets a number
    return words(leaf) in source or (numbered != leaf and words(numbered) in source)
