"""What is wrong with a document that a person wrote: every place at once, with its line where there is a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.interview import Interview, InterviewQuestion
from beadmill.artifacts.reading.fit import Fit
from beadmill.artifacts.reading.notes import Notes
from beadmill.domain.bead import check_graph
from beadmill.errors import Unprocessable

M = TypeVar("M", bound=BaseModel)
Path = tuple[str | int, ...]
MOST = 200  # problems that are told of one document
ODD = re.compile("[\0\ud800-\udfff]")
EMPTY = "at least one is needed"
MISSING = "Field required"  # pydantic's words
ITEMS = frozenset({"questions", "epics", "user_stories", "beads", "steps", "workspace_probes"})  # lists with ids


@dataclass(frozen=True, slots=True)
class Problem:
    """``line`` and ``column`` count from 1, 0 = there is no text; ``text`` is the whole line; ``path`` is dotted."""

    reason: str
    line: int = 0
    column: int = 0
    text: str = ""
    path: str = ""

    @property
    def told(self) -> str:
        place = f"line {self.line}, column {self.column}" if self.line else self.path
        return f"{place}: {self.reason}" if place else self.reason


@dataclass(frozen=True, slots=True)
class Checked:
    """``document`` is None as soon as there is one problem."""

    document: Document | None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem before its place in the text is known. ``twin`` is where the same id stands first."""

    path: Path
    reason: str
    twin: Path | None = None


Place = Callable[[Path], tuple[int, int]]  # (line, column) from 1


def accepted(checked: Checked) -> Document:
    """Raises Unprocessable, which tells the first problem in words and all of them in its details."""
    if checked.document is not None:
        return checked.document
    first, more = checked.problems[0], len(checked.problems) - 1
    raise Unprocessable(
        first.told + (f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""),
        code="DOCUMENT_INVALID",
        details={"line": first.line, "column": first.column, "problems": [_plain(p) for p in checked.problems]},
        kept="The stored document is unchanged.",
        next="Correct the line and save again." if first.line else "Correct it and save again.",
    )


def _plain(problem: Problem) -> dict[str, Any]:
    names = ("line", "column", "reason", "text", "path")
    return {name: getattr(problem, name) for name in names}


def placed(findings: Iterable[Finding], place: Place, lines: Sequence[str]) -> tuple[Problem, ...]:
    """In the order of the text; what is missing stands nowhere, so it comes last."""
    found = dict.fromkeys(_placed(one, place, lines) for one in findings)
    return tuple(sorted(found, key=lambda p: (p.reason.endswith(MISSING), p.line, p.column)))[:MOST]


def _placed(one: Finding, place: Place, lines: Sequence[str]) -> Problem:
    line, column = place(one.path)
    reason = one.reason
    if one.twin is not None:
        reason += f": first on line {place(one.twin)[0]}, again on line {line}"
    return Problem(reason, line, column, lines[line - 1] if 0 < line <= len(lines) else "", dotted(one.path))


def unplaced(findings: Iterable[Finding]) -> tuple[Problem, ...]:
    """Of a document without a text: twins are told by their paths."""
    return tuple(
        Problem(one.reason + (f": also {dotted(one.twin[:-1])}" if one.twin else ""), path=dotted(one.path))
        for one in findings
    )[:MOST]


def dotted(path: Path) -> str:
    return ".".join(map(str, path))


# --- what a tree is not -------------------------------------------------------------------------------------------
def fitted(model: type[M], tree: Any, at: Path = ()) -> tuple[M | None, list[Finding]]:
    """The record, or every unknown key and every value that cannot stay."""
    notes = Notes()
    laid = Fit({}, notes).model(model, tree)
    found = [
        Finding((*at, *_parts(note.detail)), f"unknown key {note.detail.rpartition('.')[2]}")
        for note in notes.all()
        if note.category == "dropped"
    ]
    try:
        record = model.model_validate(laid)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)
        found += [_told(one, at) for one in wrong if not _echo(one, wrong)]
        return None, found
    return (None if found else record), found


def _echo(one: Mapping[str, Any], errors: Sequence[Mapping[str, Any]]) -> bool:
    """A list whose items are all wrong is told as too short as well."""
    at = one["loc"]
    return one["type"] == "too_short" and any(len(e["loc"]) > len(at) and e["loc"][: len(at)] == at for e in errors)


def _told(one: Mapping[str, Any], at: Path) -> Finding:
    """A key that is missing is told with its name: its place is that of the mapping that lacks it."""
    where = one["loc"]
    reason = EMPTY if one["type"] == "too_short" else str(one["msg"]).removeprefix("Value error, ")
    return Finding((*at, *where), f"{dotted(where)}: {reason}" if where else reason)


def _parts(path: str) -> Path:
    return tuple(int(part) if part.isdecimal() else part for part in path.split("."))


def of_tree(tree: Any) -> Iterator[Finding]:
    """What is wrong whatever the kind: ids that are used twice, and characters that no database keeps."""
    yield from _twins(tree)
    yield from _odd(tree, ())


def _odd(tree: Any, at: Path) -> Iterator[Finding]:
    if isinstance(tree, str) and ODD.search(tree):
        yield Finding(at, f"{dotted(at)}: holds a NUL or half a character; take it out")
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _odd(value, (*at, str(key)))
    elif isinstance(tree, list):
        for n, item in enumerate(tree):
            yield from _odd(item, (*at, n))


def _twins(tree: Any) -> Iterator[Finding]:
    """Ids that two items of one kind have (stories are one kind across their epics)."""
    seen: dict[tuple[str, str], Path] = {}
    for kind, name, path in _ids(tree, ()):
        first = seen.setdefault((kind, name), path)
        if first != path:
            yield Finding(path, f"the id {name} is used twice", twin=first)


def _ids(tree: Any, at: Path) -> Iterator[tuple[str, str, Path]]:
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _ids(value, (*at, str(key)))
    elif isinstance(tree, list):
        kind = str(at[-1]) if at else ""
        for n, item in enumerate(tree):
            name = item.get("id") if isinstance(item, Mapping) else None
            if kind in ITEMS and isinstance(name, str):
                yield kind, name, (*at, n, "id")
            yield from _ids(item, (*at, n))


def meaning(document: Document) -> Iterator[Finding]:
    """What the fields alone cannot say: the graph of the beads, answers that no option offers."""
    if isinstance(document, Beads):
        yield from _graph(document)
    if isinstance(document, Interview):
        for n, question in enumerate(document.questions):
            yield from (Finding(("questions", n, "answer"), reason) for reason in _answer(question))


def _graph(plan: Beads) -> Iterator[Finding]:
    order = {bead.id: n for n, bead in enumerate(plan.beads)}
    for reason in check_graph(plan.beads):
        heads = {n: (f"{name}: ", f"{name!r}: ", f"cycle: {name} ->") for name, n in order.items()}
        n = next((n for n, starts in heads.items() if reason.startswith(starts)), 0)
        if "this id is used twice" not in reason:  # told with both of its places
            yield Finding(("beads", n, "id" if reason.startswith("'") else "dependencies"), reason)
    after = {bead.id: set(bead.blocked_by) for bead in plan.beads}
    for n, bead in enumerate(plan.beads):
        for other in bead.dependencies.blocks:
            if bead.id not in after.get(other, ()):
                reason = f"{bead.id}: says that it blocks {other}, which is not blocked by it"
                yield Finding(("beads", n, "dependencies"), reason)


def _answer(question: InterviewQuestion) -> Iterator[str]:
    chosen = question.answer.selected_option_ids
    for unknown in [one for one in chosen if one not in {option.id for option in question.options}]:
        yield f"{question.id}: there is no option {unknown}"
    if question.answer_type == "single_choice" and len(chosen) > 1:
        yield f"{question.id}: only one option can be chosen"
