"""The gate behind a planning artifact: approve exactly what was seen, or have its gaps fixed first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, TypeVar

from beadmill.artifacts.base import Document
from beadmill.artifacts.council import Change, Coverage, Resolution
from beadmill.domain.values import ArtifactRef, GateAnswer, GateKind, GateRequest, Json, Outcome
from beadmill.engine.port import Visit
from beadmill.settings import GatePolicy

D = TypeVar("D", bound=Document)


@dataclass(frozen=True, slots=True)
class Review(Generic[D]):
    """What a person is shown. ``warnings`` are about this version; ``fixes`` counts the extra rounds."""

    document: D
    ref: ArtifactRef
    coverage: Coverage
    changes: tuple[Change, ...] = ()
    unresolved: tuple[Resolution, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        done = self.coverage.ended in ("clean", "skipped")
        return done and not self.unresolved and not self.warnings

    def detail(self, problems: tuple[str, ...]) -> Json:
        """Beside the artifact: what the checks left open, and what only the person can settle."""
        return {
            "gaps": list(self.coverage.open_gaps),
            "ended": self.coverage.ended,
            "passes": [one.model_dump(mode="json") for one in self.coverage.passes],
            "unresolved": [one.model_dump(mode="json") for one in self.unresolved],
            "changes": [one.model_dump(mode="json") for one in self.changes],
            "warnings": list(self.warnings),
            "problems": list(problems),
            "extra_fixes": sum(one.extra for one in self.coverage.passes),
        }


Fix = Callable[[Review[D], int], Awaitable[Review[D]]]


async def approval(
    v: Visit,
    review: Review[D],
    *,
    title: str,
    policy: GatePolicy,
    fix: Fix[D] | None = None,
    problems: Callable[[D], tuple[str, ...]] = lambda _document: (),
) -> Outcome:
    """Asks until a version is approved. A person may have edited the document at the gate: what the answer ``saw`` is
    what counts, read back by its row. ``problems`` make a version that cannot be approved; it is asked again."""
    wrong = problems(review.document)
    for turn in count(1):
        fixable = fix is not None and bool(review.coverage.open_gaps)
        gate = GateRequest(
            kind=GateKind.APPROVE,
            title=title if not wrong else f"{title}: not valid yet",
            choices=("approve", "fix_gaps") if fixable else ("approve",),
            shows=(review.ref,),
            detail=review.detail(wrong),
            auto=_auto(policy, review, wrong),
        )
        answer = await v.ask(f"approve-{turn}", gate)
        review = await seen(v.at(f"approve-{turn}"), review, answer)
        wrong = problems(review.document)
        if answer.choice == "fix_gaps" and fix is not None:
            review = await fix(review, turn)
            wrong = problems(review.document)
        elif not wrong:
            return Outcome("approved", made=answer.saw)
    raise AssertionError("count never ends")


def _auto(policy: GatePolicy, review: Review[Any], wrong: tuple[str, ...]) -> str | None:
    if wrong or policy == "required":
        return None
    return "approve" if policy == "off" or review.clean else None


async def seen(v: Visit, review: Review[D], answer: GateAnswer) -> Review[D]:
    """The version that was on the screen when the person decided."""
    ref = next((one for one in answer.saw if one.kind == review.ref.kind), review.ref)
    if ref == review.ref:
        return review
    document = await v.get(type(review.document), ref)
    return Review(document, ref, review.coverage, unresolved=review.unresolved)
