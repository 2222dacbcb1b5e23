"""What the planning nodes share: their configuration, the parts of a brief, the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from beadmill.artifacts.base import Document
from beadmill.artifacts.interview import Interview
from beadmill.artifacts.lean import lean_yaml
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import ScanReport
from beadmill.briefs import Briefs, PartText
from beadmill.council import Table
from beadmill.engine.port import Visit, Work


@dataclass(frozen=True, slots=True)
class CouncilConfig:
    """Of a planning node in an SOP. ``mode`` and ``policy`` "", ``passes`` and ``questions`` 0 = what the run's settings
    say; ``questions`` lowers their limit. ``approve: later`` opens no gate: a later node names this one's kind in
    ``together`` and shows both at its own."""

    mode: Literal["", "council", "solo"] = ""
    passes: int = 0
    questions: int = 0
    policy: Literal["", "required", "auto_when_clean", "off"] = ""
    approve: Literal["", "later"] = ""
    together: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Ground:
    """What every planning session may see: the ticket and the files the scan found, in the run's worktree."""

    table: Table
    parts: tuple[PartText, ...]

    @property
    def ticket(self) -> PartText:
        return self.parts[0]


async def ground(v: Visit, cfg: CouncilConfig, briefs: Briefs) -> Ground:
    place = await v.get(ScanReport)
    files = await v.get(RelevantFiles)
    table = Table.of(v, briefs, Path(place.tree), solo=cfg.mode == "solo")
    return Ground(table, (ticket_part(v.work, asked=v.comment), part("relevant_files", files)))


def ticket_part(work: Work, *, asked: str = "") -> PartText:
    """``asked`` is what a person wrote when they sent the run back here."""
    lines = [f"Key: {work.key}", f"Title: {work.title}"]
    for title, text in (
        ("Description", work.description),
        ("Acceptance", work.acceptance),
        ("Asked for when an earlier version was sent back", asked),
    ):
        if text.strip():
            lines += ["", f"{title}:", text.strip()]
    return PartText("ticket_details", "\n".join(lines))


def part(name: str, document: Document) -> PartText:
    return PartText(name, lean_yaml(document))


def without_reasons(interview: Interview) -> Interview:
    """Why a person skipped a question is theirs: models see it in one section of one brief only (reference §3.4)."""
    questions = tuple(
        q.model_copy(update={"answer": q.answer.model_copy(update={"skip_reason": None})}) for q in interview.questions
    )
    return interview.model_copy(update={"questions": questions})


def listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


async def now() -> str:
    """The clock lives in a step."""
    return datetime.now(UTC).isoformat(timespec="seconds")
