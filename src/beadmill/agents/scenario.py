"""Scripted replies: which one answers a brief, and what it does. Standard library only; pure but for ``load``.

Read by scripted_cli.py and by demo/model/, so one file scripts both. A scenario is
``{"replies": [{"match": {…}, "steps": [{…}, …]}, …]}``; the first reply whose every match holds answers.

match: template, seat, turn (regex over the whole field of the brief's header) · subject, model, text, memory (regex
searched; ``text`` in the brief, ``memory`` in the earlier briefs of the conversation).
steps: write {path, content} · append {path, content} · delete path · shell command · say text ·
ask {question, options} · limit {seconds} · fail {why, message} · wait seconds · hang true · reply text ·
reply_file path (relative to the scenario) · vote {prefer: [marker, …], reason, reasons {marker: text}}.

Named tuples: dataclasses would be a third of the start of each turn of the scripted agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from beadmill.domain.values import Json

_HEADER = re.compile(
    r"\ABeadmill task: (?P<template>[^|\n]*?) *\| ticket: ?(?P<ticket>[^|\n]*?) *\| subject: ?(?P<subject>[^\n]*?)"
    r" *\| seat: ?(?P<seat>[^|\n]*?) *\| turn: ?(?P<turn>[^|\n]*?) *(?:\n|\Z)"
)
_WHOLE: Final = ("template", "seat", "turn")
_SEARCHED: Final = ("subject", "model", "text", "memory")
STEPS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "write": dict, "append": dict, "delete": str, "shell": str, "say": str, "ask": dict, "limit": dict, "fail": dict,
    "wait": (int, float), "hang": bool, "reply": str, "reply_file": str, "vote": dict,
}  # fmt: skip
_NEEDS: Final = {"write": ("path", "content"), "append": ("path", "content"), "ask": ("question",), "fail": ("why",)}
_DRAFT = re.compile(r"^#+ Draft (\d+)\b.*$", re.MULTILINE)
_CATEGORIES: Final = (
    "Coverage of requirements",
    "Correctness / feasibility",
    "Testability",
    "Minimal complexity / good decomposition",
    "Risks / edge cases addressed",
)
_BEADS_CATEGORIES: Final = (
    "Coverage of PRD requirements",
    "Correctness / feasibility of technical approach",
    "Quality and isolation of bead-scoped tests",
    "Minimal complexity / good dependency management",
    "Risks / edge cases addressed",
)


class BadScenario(ValueError):
    """Says which reply or step cannot be used, and why."""


class Header(NamedTuple):
    """The first line of every brief."""

    template: str = ""
    ticket: str = ""
    subject: str = ""
    seat: str = ""
    turn: str = ""


class Step(NamedTuple):
    kind: str
    value: Json


class Reply(NamedTuple):
    match: Mapping[str, re.Pattern[str]]
    steps: tuple[Step, ...]


class Asked(NamedTuple):
    """What a reply is picked for. ``earlier`` are the former briefs of the conversation, oldest first."""

    brief: str
    model: str = ""
    earlier: Sequence[str] = ()

    @property
    def header(self) -> Header:
        """Of the brief; a bare one (an answer to a question) goes on with the last header, one turn later."""
        own = header_of(self.brief)
        if own is not None:
            return own
        last = next((h for h in map(header_of, reversed(self.earlier)) if h is not None), Header())
        return Header(last.template, last.ticket, last.subject, last.seat, str(len(self.earlier) + 1))


class Scenario(NamedTuple):
    replies: tuple[Reply, ...]
    folder: Path

    def pick(self, asked: Asked) -> tuple[Step, ...]:
        """The steps of the first match. ``reply_file`` and ``vote`` are already turned into ``reply``."""
        fields = _fields(asked)
        for reply in self.replies:
            if all(_holds(name, pattern, fields[name]) for name, pattern in reply.match.items()):
                return tuple(self._plain(step, asked) for step in reply.steps)
        wanted = asked.brief.partition("\n")[0][:300]
        return (Step("fail", {"why": "internal", "message": f"the scenario has no reply for: {wanted}"}),)

    def _plain(self, step: Step, asked: Asked) -> Step:
        if step.kind == "reply_file":
            return Step("reply", (self.folder / step.value).read_text(encoding="utf-8"))
        if step.kind == "vote":
            return Step("reply", vote(asked.brief, asked.header.template, step.value))
        return step


def load(path: Path) -> Scenario:
    """Raises BadScenario; FileNotFoundError when there is no such file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadScenario(f"{path.name} is not JSON: {error}") from error
    return parse(data, folder=path.parent)


def parse(data: Json, *, folder: Path) -> Scenario:
    rows = data.get("replies") if isinstance(data, dict) else None
    if not isinstance(rows, list):
        raise BadScenario("a scenario has a list of replies")
    return Scenario(tuple(_reply(n, row) for n, row in enumerate(rows, 1)), folder)


def header_of(brief: str) -> Header | None:
    found = _HEADER.match(brief)
    return Header(**found.groupdict()) if found else None


def _fields(asked: Asked) -> Mapping[str, str]:
    header = asked.header
    return {
        "template": header.template,
        "seat": header.seat,
        "turn": header.turn,
        "subject": header.subject,
        "model": asked.model,
        "text": asked.brief,
        "memory": "\n".join(asked.earlier),
    }


def _holds(name: str, pattern: re.Pattern[str], value: str) -> bool:
    return (pattern.fullmatch(value) if name in _WHOLE else pattern.search(value)) is not None


def _reply(n: int, row: Json) -> Reply:
    if not isinstance(row, dict) or not isinstance(row.get("steps"), list):
        raise BadScenario(f"reply {n}: a reply has a list of steps")
    match: dict[str, re.Pattern[str]] = {}
    for name, pattern in (row.get("match") or {}).items():
        if name not in (*_WHOLE, *_SEARCHED):
            raise BadScenario(f"reply {n}: there is nothing called {name!r} to match")
        try:
            match[name] = re.compile(str(pattern), re.MULTILINE)
        except re.error as error:
            raise BadScenario(f"reply {n}: {name}: {pattern!r} is no regular expression: {error}") from error
    return Reply(match, tuple(_step(n, step) for step in row["steps"]))


def _step(n: int, row: Json) -> Step:
    if not isinstance(row, dict) or len(row) != 1:
        raise BadScenario(f"reply {n}: a step has exactly one key, not {row!r}")
    kind: str
    value: Json
    ((kind, value),) = row.items()
    if kind not in STEPS or not isinstance(value, STEPS[kind]):
        raise BadScenario(f"reply {n}: no such step: {kind}: {value!r}")
    missing = [key for key in _NEEDS.get(kind, ()) if key not in row[kind]]
    if missing:
        raise BadScenario(f"reply {n}: {kind} lacks {', '.join(missing)}")
    return Step(kind, value)


def vote(brief: str, template: str, how: Mapping[str, Json]) -> str:
    """Scores the ``### Draft N`` sections of a brief by the first preferred marker that each contains."""
    heads = list(_DRAFT.finditer(brief))
    ends = [head.start() for head in heads[1:]] + [len(brief)]
    prefer: Sequence[str] = how.get("prefer", ())
    names = _BEADS_CATEGORIES if template.startswith("beads") else _CATEGORIES
    lines = ["draft_scores:"]
    for head, end in zip(heads, ends, strict=True):
        section = brief[head.end() : end]
        rank = next((n for n, marker in enumerate(prefer) if marker in section), len(prefer))
        points = [max(18 - 2 * rank - n % 2, 1) for n in range(len(names))]
        lines.append(f"  Draft {head[1]}:")
        lines += [f"    {name}: {score}" for name, score in zip(names, points, strict=True)]
        reasons = how.get("reasons", {})
        reason = reasons.get(prefer[rank]) if rank < len(prefer) else None
        said = reason or how.get("reason") or f"preference {rank + 1}"
        lines += [f"    total_score: {sum(points)}", f"    reason: {json.dumps(said, ensure_ascii=False)}"]
    return "\n".join(lines) + "\n"
