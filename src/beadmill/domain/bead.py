"""What a bead's state is: a pure fold of the plan and the ledger of attempts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeVar

from beadmill.domain.machine import AttemptState
from beadmill.domain.values import Json

ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")  # it is part of durable keys, folder names and commit subjects


class Planned(Protocol):
    """The part of a bead this module needs. ``sha`` is the hash of everything its work depends on."""

    @property
    def id(self) -> str: ...
    @property
    def sha(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def blocked_by(self) -> Sequence[str]: ...
    @property
    def skipped(self) -> bool: ...


B = TypeVar("B", bound=Planned)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at one bead. ``proof`` and ``note`` are JSON of proof/ and of the failure."""

    bead: str
    n: int
    bead_sha: str
    state: AttemptState
    visit: str = ""
    start_commit: str = ""
    end_commit: str = ""
    tree: str = ""
    note: str = ""
    sessions: tuple[str, ...] = ()
    proof: Mapping[str, Json] = field(default_factory=dict)
    started: datetime | None = None
    ended: datetime | None = None


class BeadState(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    ERROR = "error"  # its last attempt failed and no new one has begun


def status(plan: Sequence[B], attempts: Sequence[Attempt]) -> dict[str, BeadState]:
    """By bead id, in plan order. Only attempts made for exactly the planned bead (same sha) count."""
    return {bead.id: _state(bead, attempts) for bead in plan}


def _state(bead: Planned, attempts: Sequence[Attempt]) -> BeadState:
    own = sorted((a for a in attempts if a.bead == bead.id and a.bead_sha == bead.sha), key=lambda a: a.n)
    states = [a.state for a in own]
    if bead.skipped or AttemptState.DONE in states:
        return BeadState.DONE
    if AttemptState.OPEN in states:
        return BeadState.IN_PROGRESS
    return BeadState.ERROR if states and states[-1] is AttemptState.FAILED else BeadState.PENDING


def runnable(plan: Sequence[B], attempts: Sequence[Attempt]) -> list[B]:
    """Beads to work on now, by priority: not done, and everything that blocks them is. A bead in error is among them:
    whether it may be tried again is the budget of its attempts, and after a retry it must be found."""
    states = status(plan, attempts)
    ready = [
        bead
        for bead in plan
        if states[bead.id] is not BeadState.DONE
        and all(states.get(other) is BeadState.DONE for other in bead.blocked_by)
    ]
    return sorted(ready, key=lambda bead: bead.priority)


def undone(plan: Sequence[B], attempts: Sequence[Attempt]) -> tuple[str, ...]:
    """What is left. Non-empty while nothing is runnable = the plan cannot finish (its graph is broken)."""
    return tuple(name for name, state in status(plan, attempts).items() if state is not BeadState.DONE)


def check_graph(plan: Sequence[B]) -> tuple[str, ...]:
    """Why the plan cannot be worked off, in words; empty = it can."""
    blockers: dict[str, tuple[str, ...]] = {}
    problems: list[str] = []
    for bead in plan:
        if not ID.fullmatch(bead.id):
            problems.append(f"{bead.id!r}: an id is lower-case letters, digits, dot, dash or underscore, 64 at most")
        if bead.id in blockers:
            problems.append(f"{bead.id}: this id is used twice")
        blockers[bead.id] = (*blockers.get(bead.id, ()), *bead.blocked_by)
    for name, others in blockers.items():
        for other in dict.fromkeys(others):
            if other == name:
                problems.append(f"{name}: is blocked by itself")
            elif other not in blockers:
                problems.append(f"{name}: is blocked by {other}, which is not in the plan")
    return (*problems, *_cycles(blockers))


def _cycles(blockers: Mapping[str, Sequence[str]]) -> list[str]:
    """Each cycle once, as ``a -> b -> a`` (a is blocked by b). Iterative: plans may be long chains."""
    problems: list[str] = []
    finished: set[str] = set()
    for root in blockers:
        path: list[str] = []
        todo = [(root, False)]
        while todo:
            name, leaving = todo.pop()
            if leaving:
                finished.add(path.pop())
            elif name in path:
                problems.append(f"cycle: {' -> '.join((*path[path.index(name) :], name))}")
            elif name not in finished:
                path.append(name)
                todo.append((name, True))
                todo.extend((o, False) for o in dict.fromkeys(blockers[name]) if o in blockers and o != name)
    return problems
