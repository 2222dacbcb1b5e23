"""The gate behind a planning artifact: approve exactly what was seen, decide what contradicts, or have gaps fixed first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Generic, TypeVar

from beadmill.artifacts.base import Document
from beadmill.artifacts.council import Change, Coverage, Decided
from beadmill.domain.gate import automatic, counted
from beadmill.domain.values import ArtifactRef, GateAnswer, GateKind, GateRequest, Json, Outcome
from beadmill.engine.port import Visit
from beadmill.settings import GatePolicy

D = TypeVar("D", bound=Document)
ANSWER_KEPT = 20_000  # characters of one decision


@dataclass(frozen=True, slots=True)
class Review(Generic[D]):
    """What a person is shown. ``changes`` and ``warnings`` are about this version."""

    document: D
    ref: ArtifactRef
    coverage: Coverage
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    beside: tuple[Review[Any], ...] = ()  # shown and approved with it

    @property
    def own(self) -> tuple[str, ...]:
        """Gaps, and contradictions nobody has decided, each once."""
        return tuple(dict.fromkeys((*self.coverage.open_gaps, *(one.gap for one in self.coverage.unresolved))))

    @property
    def open(self) -> tuple[str, ...]:
        """What an approval has to acknowledge. What is open beside it says whose it is."""
        return (*self._beside_open, *self.own)

    @property
    def _beside_open(self) -> tuple[str, ...]:
        return tuple(f"{one.ref.kind}: {gap}" for one in self.beside for gap in one.open)

    @property
    def shows(self) -> tuple[ArtifactRef, ...]:
        return (*(one.ref for one in self.beside), self.ref)

    @property
    def held(self) -> tuple[str, ...]:
        """Why this is not clean."""
        undecided = len(self.coverage.unresolved)
        parts = (
            *(f"{one.ref.kind}: {why}" for one in self.beside for why in one.held),
            counted(len(self.own) - undecided, "gap"),
            counted(undecided, "undecided contradiction"),
            counted(len(self.warnings), "warning"),
        )
        return tuple(part for part in parts if part)

    def detail(self, problems: Sequence[str]) -> dict[str, Json]:
        """Beside the artifact: what the checks left open, and what only the person can settle."""
        coverage = self.coverage
        return {
            "gaps": [*self._beside_open, *coverage.open_gaps],
            "ended": coverage.ended,
            "passes": [one.model_dump(mode="json") for one in coverage.passes],
            "unresolved": [one.model_dump(mode="json") for one in coverage.unresolved],
            "decided": [one.model_dump(mode="json") for one in coverage.decisions],
            "changes": [one.model_dump(mode="json") for one in self.changes],
            "warnings": list(self.warnings),
            "problems": list(problems),
            "extra_fixes": sum(one.extra for one in coverage.passes),
        }

    def form(self) -> Json:
        """JSON Schema of the payload: a contradiction's own words → what the person decides."""
        field = {"type": "string", "maxLength": ANSWER_KEPT}
        asked = {one.gap: {**field, "description": one.rationale} for one in self.coverage.unresolved}
        decisions = {"type": "object", "properties": asked, "additionalProperties": False}
        return {"type": "object", "properties": {"decisions": decisions}, "additionalProperties": False}


Fix = Callable[[Review[D], int, tuple[Decided, ...]], Awaitable[Review[D]]]


async def approval(
    v: Visit,
    review: Review[D],
    *,
    title: str,
    policy: GatePolicy,
    fix: Fix[D] | None = None,
    problems: Callable[[Review[D]], tuple[str, ...]] = lambda _review: (),
) -> Outcome:
    """Asks until a version is approved. A person may have edited the document at the gate: what the answer ``saw`` is
    what counts, read back by its row. ``problems`` make a version that cannot be approved; it is asked again."""
    wrong = problems(review)
    for turn in count(1):
        gate = _gate(review, wrong, title=title, policy=policy, fixable=fix is not None)
        answer = await v.ask(f"approve-{turn}", gate)
        review = await seen(v.at(f"approve-{turn}"), review, answer)
        wrong = problems(review)
        if answer.choice == "fix_gaps":
            decisions = decided(review.coverage, answer)
            if fix is not None and (review.coverage.open_gaps or decisions):
                review = await fix(review, turn, decisions)
                wrong = problems(review)
        elif not wrong:
            return Outcome("approved", made=answer.saw)
    raise AssertionError("count never ends")


def _gate(review: Review[Any], wrong: Sequence[str], *, title: str, policy: GatePolicy, fixable: bool) -> GateRequest:
    yes = "approve_with_gaps" if review.open else "approve"
    gate = GateRequest(
        kind=GateKind.APPROVE,
        title=title if not wrong else f"{title}: not valid yet",
        choices=("fix_gaps", yes) if fixable and review.own else (yes,),
        shows=review.shows,
        form=review.form(),
        detail=review.detail(wrong),
    )
    return automatic(gate, policy, yes, (*review.held, *(("not valid yet",) if wrong else ())), never=bool(wrong))


def decided(coverage: Coverage, answer: GateAnswer) -> tuple[Decided, ...]:
    """What the person said to the contradictions they were asked about; a blank field decides nothing."""
    payload = answer.payload if isinstance(answer.payload, dict) else {}
    said = payload.get("decisions") or {}
    at = answer.at.isoformat(timespec="seconds")
    words = [(one.gap, str(said.get(one.gap) or "").strip()) for one in coverage.unresolved]
    return tuple(Decided(gap=gap, answer=text, by=str(answer.by), at=at) for gap, text in words if text)


async def seen(v: Visit, review: Review[D], answer: GateAnswer) -> Review[D]:
    """The version that was on the screen when the person decided."""
    beside = tuple([await seen(v, one, answer) for one in review.beside])
    ref = next((one for one in answer.saw if one.kind == review.ref.kind), review.ref)
    if ref == review.ref:
        return replace(review, beside=beside)
    document = await v.get(type(review.document), ref)
    return replace(review, document=document, ref=ref, changes=(), warnings=(), beside=beside)
