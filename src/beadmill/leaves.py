"""Every setting of a run as one leaf: its place, what it takes, when it is read, and what it does in one line."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types as at
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from beadmill.settings import RunSettings, SeatConfig

When = Literal["start", "visit", "try", "session", "gate"]
Kind = Literal["switch", "choice", "integer", "number", "seat", "seats", "lines", "text"]
WHEN: Mapping[When, str] = {
    "start": "frozen when a ticket starts",
    "visit": "read when the next stage begins",
    "try": "read when the next try begins",
    "session": "read when the next session begins",
    "gate": "frozen when a ticket starts; its gate can raise it",
}
# What a leaf does, and when it is read where that is not the start (reference looptroop-lifecycle §1.3).
SAYS: Mapping[str, str] = {
    "implementer": "scans, plans the setup, builds; the first seat of the council when it is unset",
    "council.seats": "who drafts and votes, in order",
    "council.mode": "solo plans with the first seat and does not vote",
    "council.quorum": "usable drafts, and votes, that are needed",
    "council.deadline_s": "seconds of working time of a seat in one round",
    "council.structured_retries": "how often a reply that cannot be read is asked for again",
    "council.interview_questions": "most questions of an interview",
    "council.follow_up_percent": "follow-up questions, in percent of the questions of the interview",
    "council.interview_passes": "checks of the interview for gaps",
    "council.prd_passes": "checks of the requirements for gaps",
    "council.beads_passes": "checks of the plan for gaps",
    "gates.interview": "who approves the interview with its answers",
    "gates.prd": "who approves the requirements",
    "gates.beads": "who approves the plan",
    "gates.setup": "who approves the setup of the workspace",
    "build.attempts": "tries per bead, per setup and per final test",
    "build.parallel": "beads of a ticket that are built at the same time, where none needs another",
    "build.iteration_s": "seconds of working time of a try",
    "build.idle_s": "seconds without a sign of life before a session is ended",
    "build.command_s": "seconds for a command that Beadmill runs",
    "build.setup_s": "seconds for a setup attempt",
    "build.continuations": "how often an unfinished try is told to go on",
    "build.max_steps": "calls of tools in one turn of coding, then it is told to go on; 0 = no cap",
    "build.earlier": "a bead must also pass the commands that proved earlier beads",
    "build.red_on_base": "a bead's new tests pass without its change: say so, refuse the bead, do not look",
    "build.tamper": "an existing test was weakened: say so, refuse, do not look",
    "build.bead_review": "another seat checks each bead against its criteria: say what it finds, refuse the bead, no check",
    "build.review": "the reviewer asks for changes: say so, go back to building, no review",
    "budget.usd": "dollars of all sessions of the run",
    "budget.tokens": "tokens of all sessions of the run",
    "budget.minutes": "minutes of agent time",
    "questions.enabled": "agents may ask while they work",
    "questions.window_s": "seconds to answer; after that the agent decides by itself",
    "limits.fallback": "the seat that takes over when a provider's usage limit ends later than limits.wait_minutes",
    "limits.wait_minutes": "how long a usage limit is waited for before the fallback takes over, where there is one",
    "manual_qa": "whether a person checks the verified change by hand; auto: as the SOP says",
    "sandbox": "where agents and commands run",
    "sandbox_image": "the image whose programs a container shows; empty = this machine's",
    "network": "what commands reach, and agents with allow-list",
    "allow_hosts": "what is in reach with network = allow-list",
    "readable": "folders that the sandbox shows read-only beside the workspace",
    "agent_slots": "agent sessions at the same time in one project",
    "parallel_tickets": "tickets of a project that build or verify at the same time",
    "context_tokens": "most tokens that one brief may hold, by estimate",
}
READ: Mapping[str, When] = {
    "council.quorum": "visit",
    "council.deadline_s": "visit",
    "build.attempts": "try",
    "build.parallel": "visit",
    "build.iteration_s": "try",
    "build.idle_s": "try",
    "build.command_s": "try",
    "build.setup_s": "try",
    "build.continuations": "try",
    "build.max_steps": "session",
    "budget.usd": "gate",
    "budget.tokens": "gate",
    "budget.minutes": "gate",
}
LIVE: frozenset[When] = frozenset({"visit", "try", "session"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """``path`` is dotted. ``least`` and ``most`` bound a number, or the length of a list. ``optional``: None is a
    value (no limit, nobody)."""

    path: str
    kind: Kind
    default: Any
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    optional: bool = False

    @property
    def group(self) -> str:
        """Empty for a setting without one."""
        return self.path.rpartition(".")[0]

    @property
    def says(self) -> str:
        return SAYS[self.path]

    @property
    def when(self) -> When:
        return READ.get(self.path, "start")

    @property
    def live(self) -> bool:
        """A run reads it again at its next boundary."""
        return self.when in LIVE

    @property
    def range(self) -> str:
        """``1–20``, ``from 8000``, ``above 0``, the choices, or nothing."""
        if self.choices:
            return ", ".join(self.choices)
        if self.above is not None:
            return f"above {self.above:g}"
        if self.least is not None and self.most is not None:
            return f"{self.least:g}–{self.most:g}"
        if self.least is not None:
            return f"from {self.least:.0f}"
        return f"up to {self.most:g}" if self.most is not None else ""


@cache
def leaves() -> Mapping[str, Leaf]:
    """By path, in the order of the model."""
    return {leaf.path: leaf for leaf in _walk(RunSettings, "", RunSettings().model_dump(mode="json"))}


def _walk(model: type[BaseModel], above: str, defaults: Mapping[str, Any]) -> Iterator[Leaf]:
    for name, field in model.model_fields.items():
        path, group = f"{above}{name}", field.annotation
        if isinstance(group, type) and issubclass(group, BaseModel) and group is not SeatConfig:
            yield from _walk(group, f"{path}.", defaults[name])
        else:
            yield _leaf(path, field, defaults[name])


def _leaf(path: str, field: FieldInfo, default: Any) -> Leaf:
    annotation, optional = _plain(field.annotation)
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    bounds: dict[str, Any] = {}
    for one in field.metadata:
        match one:
            case at.Ge():
                bounds["least"] = one.ge
            case at.Le():
                bounds["most"] = one.le
            case at.Gt():
                bounds["above"] = one.gt
            case at.MaxLen():
                bounds["most"] = one.max_length
    return Leaf(path, _kind(annotation), default, choices, optional=optional, **bounds)


def _plain(annotation: Any) -> tuple[Any, bool]:
    """``X | None`` → X, True."""
    if get_origin(annotation) in (Union, types.UnionType):
        (inner,) = [one for one in get_args(annotation) if one is not type(None)]
        return inner, True
    return annotation, False


def _kind(annotation: Any) -> Kind:
    if get_origin(annotation) is Literal:
        return "choice"
    if get_origin(annotation) is tuple:
        return "seats" if get_args(annotation)[0] is SeatConfig else "lines"
    plain: Mapping[Any, Kind] = {bool: "switch", int: "integer", float: "number", str: "text", SeatConfig: "seat"}
    return plain[annotation]


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """A layer by the paths of its leaves; what is no leaf is left out."""
    out: dict[str, Any] = {}
    for path in leaves():
        at_: Any = values
        for name in path.split("."):
            at_ = at_.get(name, _ABSENT) if isinstance(at_, Mapping) else _ABSENT
        if at_ is not _ABSENT:
            out[path] = at_
    return out


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The layer that ``flat`` came from."""
    out: dict[str, Any] = {}
    for path, value in values.items():
        *groups, last = path.split(".")
        into = out
        for name in groups:
            into = into.setdefault(name, {})
        into[last] = value
    return out


def live_part(settings: RunSettings) -> dict[str, Any]:
    """What of ``settings`` a run reads again, as a layer."""
    known = leaves()
    return nested({p: value for p, value in flat(settings.model_dump(mode="json")).items() if known[p].live})


_ABSENT = object()
