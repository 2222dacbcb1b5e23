"""What a council is doing, and what its seats achieved."""

from __future__ import annotations

from beadmill.domain.values import Json
from beadmill.operations.views.base import Spend, View


class SeatTurn(View):
    """One seat in one phase. ``state``: pending, working, asks (a question waits for a person), or how it ended:
    completed, timed_out, invalid_output, full_answers_invalid, failed. ``since`` is set while a session runs."""

    seat: int  # position, from 0
    label: str
    state: str
    error: str = ""
    since: str | None = None
    sessions: int = 0
    spend: Spend = Spend()  # of the sessions that have ended


class PhaseView(View):
    """``draft`` and ``vote`` have every seat; ``refine``, ``cover``, ``expand``, ``fix`` and ``live`` the one that won."""

    name: str
    seats: tuple[SeatTurn, ...]


class CouncilView(View):
    """One visit's council. The documents are as stored, null before they exist; ``meanings`` explain the rubric."""

    run: str
    node: str
    visit: str
    domain: str
    quorum: int
    solo: bool
    phases: tuple[PhaseView, ...]
    drafts: Json
    votes: Json
    refined: Json
    coverage: Json
    meanings: tuple[str, ...]


class SeatPart(View):
    """One seat in one council."""

    seat: int
    label: str
    outcome: str
    won: bool
    mean: float | None
    adopted: int
    brought: int
    approved: int
    merged: int


class HeldView(View):
    """One council of the record, with the ticket it planned. ``winner`` null = there was no vote."""

    ticket: str | None
    run: str
    node: str
    visit: str
    domain: str
    winner: str | None
    tie_break: str
    created: str
    seats: tuple[SeatPart, ...]


class SeatRecord(View):
    """All councils of one agent, model and effort. ``definitions`` of the record says what each number counts."""

    label: str
    councils: int
    drafts: dict[str, int]  # by outcome
    stood: dict[str, int]  # by domain
    wins: dict[str, int]  # by domain
    votes: int
    mean: float | None
    adopted: int
    brought: int
    approved: int
    merged: int
    spend: Spend


class CouncilRecord(View):
    """Newest council first; ``more`` = older ones were left out."""

    project: str
    seats: tuple[SeatRecord, ...]
    councils: tuple[HeldView, ...]
    more: bool
    definitions: dict[str, str]
