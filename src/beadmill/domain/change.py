"""A change at a forge: what every layer may know of it. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ChangeStatus(StrEnum):
    DRAFT = "draft"
    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ChangeRef:
    number: int


@dataclass(frozen=True, slots=True)
class Change:
    ref: ChangeRef
    url: str
    status: ChangeStatus
    title: str
    branch: str
    base: str
    head: str
