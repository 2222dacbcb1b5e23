"""What an agent really said: raw replies, why each was refused, what reading did to the accepted one (§11.4)."""

from __future__ import annotations

from typing import ClassVar, Literal

from beadmill.artifacts.base import Document, Record
from beadmill.artifacts.council import Intervention

RAW_KEPT = 1_000_000  # characters of one raw reply that are kept


class RawReply(Record):
    """``failure`` is reading's class (empty, echo, parse, validation, truncated) or how the session ended."""

    session: str
    outcome: Literal["accepted", "rejected"]
    text: str = ""
    failure: str = ""
    error: str = ""
    fresh: bool = True  # False = a repair in the same conversation


class Reply(Document):
    """One structured exchange with its re-asks."""

    kind: ClassVar[str] = "reply"

    name: str  # durable name inside the visit
    shape: str
    accepted: bool
    attempts: tuple[RawReply, ...]
    interventions: tuple[Intervention, ...] = ()
