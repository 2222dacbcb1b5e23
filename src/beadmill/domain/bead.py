"""What a bead's state is: a pure fold of the plan and the ledger of attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from beadmill.domain.machine import AttemptState
from beadmill.domain.values import Json


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
