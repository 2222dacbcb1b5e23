"""Coverage: audit, revise, audit again, bounded; exactly one resolution per gap (reference looptroop-lifecycle §2.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Generic, TypeVar

from beadmill.artifacts.base import Document
from beadmill.artifacts.council import Change, Coverage, CoveragePass, CoverageReply, Decided
from beadmill.artifacts.lean import lean_yaml
from beadmill.artifacts.reading.shapes import COVERAGE
from beadmill.briefs import PartText
from beadmill.council.desk import Desk, Table
from beadmill.council.domains import Domain
from beadmill.domain.coverage import after_document_pass, final_pass
from beadmill.domain.values import SYSTEM, ArtifactRef
from beadmill.engine.port import Visit

D = TypeVar("D", bound=Document)


@dataclass(frozen=True, slots=True)
class Candidate(Generic[D]):
    """A version on its way to a person. ``changes`` are those of the last revision."""

    document: D
    ref: ArtifactRef
    coverage: Coverage
    changes: tuple[Change, ...] = ()

    @property
    def gaps(self) -> tuple[str, ...]:
        return self.coverage.open_gaps


@dataclass(frozen=True, slots=True)
class Cover(Generic[D]):
    """``against`` is what the candidate must cover; ``settle`` fills what Beadmill owns in a revised document."""

    domain: Domain[D]
    table: Table
    winner: int
    limit: int
    against: Callable[[], Sequence[PartText]]
    settle: Callable[[D], D]
    context: dict[str, object]

    async def loop(self, v: Visit, first: D) -> Candidate[D]:
        """Up to ``limit`` audits with a revision between two of them. Rows below ``cover/pass-n``."""
        ref = await v.put(first, by=self.table.seats[self.winner])
        candidate = Candidate(first, ref, Coverage(domain=self.domain.name, ended="gaps"))
        for number in range(1, self.limit + 1):
            here = v.at(f"cover/pass-{number}")
            reply = await self._audit(here, candidate, number=number, extra=False)
            verdict = after_document_pass(number=number, limit=self.limit, gaps=len(reply.gaps))
            candidate = await self._noted(v, candidate, reply, verdict.ended or "gaps")
            if verdict.go == "approve":
                return candidate
            before = candidate.document
            candidate = await self._revise(here, candidate)
            last = candidate.coverage.passes[-1].resolutions
            if candidate.document == before and all(r.action == "left_unresolved" for r in last):
                return candidate  # only a person can go on: another audit would find the same
        return candidate

    async def fix(self, v: Visit, seen: Candidate[D], turn: int, decisions: Sequence[Decided] = ()) -> Candidate[D]:
        """An Extra Fix that a person asked for: one revision of what they saw, told what they decided on
        contradictions, and one fresh audit."""
        here = v.at(f"fix-{turn}")
        candidate = await self._revise(here, seen, decisions)
        reply = await self._audit(here, candidate, number=len(candidate.coverage.passes) + 1, extra=True)
        return await self._noted(here, candidate, reply, "gaps" if reply.gaps else "clean", extra=True)

    async def _audit(self, v: Visit, candidate: Candidate[D], *, number: int, extra: bool) -> CoverageReply:
        done = await Desk(self.table, self.winner, v).write(
            "audit",
            f"{self.domain.name}_coverage",
            COVERAGE,
            lambda: (
                *self.against(),
                PartText(self.domain.name, lean_yaml(candidate.document)),
                _decisions(candidate.coverage.decisions),
            ),
            values={
                "pass_number": number,
                "max_passes": self.limit,
                "is_final": final_pass(number, self.limit),
                "extra": extra,
            },
            subject=f"extra fix {number}" if extra else f"pass {number}",
            turn=str(number),
        )
        return done.value

    async def _revise(self, v: Visit, candidate: Candidate[D], decisions: Sequence[Decided] = ()) -> Candidate[D]:
        known = {one.gap for one in (*candidate.coverage.decisions, *decisions)}
        gaps = tuple(dict.fromkeys((*candidate.gaps, *(one.gap for one in decisions))))
        decided = tuple(gap for gap in gaps if gap in known)
        if self.domain.revised is None:
            raise TypeError(f"{self.domain.name} has no revision")
        number = len(candidate.coverage.passes)
        done = await Desk(self.table, self.winner, v).write(
            "revise",
            f"{self.domain.name}_revise",
            self.domain.revised,
            lambda: (*self.against(), *self._to_revise(candidate, gaps, decisions)),
            context={"before": candidate.document, "gaps": gaps, "decided": decided, **self.context},
            subject=f"revision {number}",
            turn=str(number),
        )
        document = self.settle(done.value.document)
        ref = await v.put(document, by=self.table.seats[self.winner], parent=candidate.ref)
        last = candidate.coverage.passes[-1].model_copy(
            update={"resolutions": done.value.resolutions, "decisions": tuple(decisions)}
        )
        passes = (*candidate.coverage.passes[:-1], last)
        coverage = candidate.coverage.model_copy(update={"passes": passes})
        await v.put(coverage, by=SYSTEM)
        return Candidate(document, ref, coverage, done.value.changes)

    def _to_revise(
        self, candidate: Candidate[D], gaps: Sequence[str], decisions: Sequence[Decided]
    ) -> tuple[PartText, ...]:
        return (
            PartText(self.domain.name, lean_yaml(candidate.document)),
            PartText("coverage_gaps", "\n".join(f"- {gap}" for gap in gaps)),
            _decisions((*candidate.coverage.decisions, *decisions)),
            PartText("extra_fixes", _history(candidate.coverage)),
        )

    async def _noted(
        self, v: Visit, candidate: Candidate[D], reply: CoverageReply, ended: Any, *, extra: bool = False
    ) -> Candidate[D]:
        found = CoveragePass(
            number=len(candidate.coverage.passes) + 1,
            status="gaps" if reply.gaps else "clean",
            gaps=reply.gaps,
            candidate_sha256=candidate.ref.sha256,
            extra=extra,
            final=not extra and final_pass(len(candidate.coverage.passes) + 1, self.limit),
        )
        passes = (*candidate.coverage.passes, found)
        coverage = candidate.coverage.model_copy(update={"passes": passes, "ended": ended})
        await v.put(coverage, by=SYSTEM)
        return replace(candidate, coverage=coverage)


def _decisions(decided: Sequence[Decided]) -> PartText:
    """Word for word; no text when nobody decided anything."""
    lines = [f"- {one.gap}\n  The person decided: {one.answer}" for one in {d.gap: d for d in decided}.values()]
    head = (
        ["These are decisions of the person. They hold: carry them out, and do not raise them again."] if lines else []
    )
    return PartText("decisions", "\n".join([*head, *lines]))


def _history(coverage: Coverage) -> str:
    """What earlier extra rounds found and did, so that a new one does not turn in circles."""
    lines: list[str] = []
    for before, one in pairwise(coverage.passes):
        if one.extra:
            lines += [f"Extra round, check {one.number} afterwards: {one.status}"]
            lines += [f"- {r.action}: {r.gap}: {r.rationale}" for r in before.resolutions]
            lines += [f"- then still open: {gap}" for gap in one.gaps]
    return "\n".join(lines)
