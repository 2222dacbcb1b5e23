"""prd: every seat answers what was skipped and drafts; the council's document is covered, then approved (reference §4)."""

from __future__ import annotations

from functools import partial

from beadmill.artifacts.council import Decided, PrdFindings
from beadmill.artifacts.interview import Approval, Interview
from beadmill.artifacts.prd import Prd, SourceInterview
from beadmill.artifacts.reading.shapes import PRD as PRD_SHAPE
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import ScanReport
from beadmill.briefs import Briefs, PartText
from beadmill.council import PRD, Candidate, Council, Cover, Desk, Draft, Drafts
from beadmill.council.drafts import fenced, label
from beadmill.domain.council import Tally
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.nodes._answers import full_answers
from beadmill.nodes._approval import Review, approval
from beadmill.nodes._planning import CouncilConfig, Ground, ground, part, without_reasons


class PrdNode:
    spec = NodeSpec(
        "prd", CouncilConfig, frozenset({"approved"}), reads=(ScanReport, RelevantFiles, Interview), writes=(Prd,)
    )

    def __init__(self, briefs: Briefs) -> None:
        self.briefs = briefs

    async def visit(self, v: Visit, cfg: CouncilConfig, /) -> Outcome:
        interview = await v.get(Interview)
        where = await ground(v, cfg, self.briefs)
        council = Council(v, PRD, where.table)
        settle = partial(settled, key=v.work.key, interview=interview)

        async def answer_then_draft(desk: Desk) -> Draft[Prd]:  # both on the seat's one clock
            answers = await full_answers(desk, where, interview)
            done = await desk.write(
                "draft",
                "prd_draft",
                PRD_SHAPE,
                lambda: (*where.parts, part("full_answers", answers)),
                questions=PRD.questions,
            )
            return Draft(desk.position, settle(done.value), answers, done.interventions)

        await v.phase(Phase.DRAFTING_PRD)
        drafts = await council.draft(answer_then_draft)
        await v.phase(Phase.COUNCIL_VOTING_PRD)
        tally = await council.vote(drafts, lambda: (*where.parts, part("interview", without_reasons(interview))))
        await v.phase(Phase.REFINING_PRD)
        first = settle(await self._refine(council, where, drafts, tally))
        await v.phase(Phase.VERIFYING_PRD_COVERAGE)
        cover = await self._cover(v, cfg, where, winner=drafts.of(tally.winner), settle=settle)
        candidate = await cover.loop(v, first)

        async def fix(seen: Review[Prd], turn: int, decisions: tuple[Decided, ...]) -> Review[Prd]:
            await v.phase(Phase.VERIFYING_PRD_COVERAGE)
            fixed = await cover.fix(v, Candidate(seen.document, seen.ref, seen.coverage), turn, decisions)
            await v.phase(Phase.WAITING_PRD_APPROVAL)
            return review(fixed)

        if cfg.approve == "later":
            return await later(v, candidate)
        await v.phase(Phase.WAITING_PRD_APPROVAL)
        title = f"Approve the requirements of {v.work.key}"
        return await approval(v, review(candidate), title=title, policy=cfg.policy or v.settings.gates.prd, fix=fix)

    async def _refine(self, council: Council[Prd], where: Ground, drafts: Drafts[Prd], tally: Tally) -> Prd:
        """The refiner sees what every draft rests on, under the numbers of the drafts."""
        ranked = drafts.winner_first(tally.winner)
        answers = tuple(
            PartText("full_answers", f"### Answers behind {label(n)}\n\n{fenced(draft.basis)}")
            for n, draft in enumerate(ranked, 1)
            if draft.basis is not None
        )
        return await council.refine(drafts, tally, lambda: (*where.parts, *answers), context={}, values={})

    async def _cover(
        self, v: Visit, cfg: CouncilConfig, where: Ground, *, winner: Draft[Prd], settle: partial[Prd]
    ) -> Cover[Prd]:
        """Audited against the winner's Full Answers, which a person can read beside the document."""
        basis = winner.basis
        if basis is None:
            raise TypeError("a PRD draft rests on Full Answers")
        await v.put(basis, by=where.table.seats[winner.seat])
        limit = cfg.passes or v.settings.council.prd_passes
        return Cover(PRD, where.table, winner.seat, limit, lambda: (part("full_answers", basis),), settle, {})


async def later(v: Visit, candidate: Candidate[Prd]) -> Outcome:
    """No gate of its own: what is open goes along to the one that shows it."""
    prd = candidate.document.sha256
    findings = PrdFindings(prd_sha256=prd, coverage=candidate.coverage)
    found = await v.put(findings, by=SYSTEM)
    return Outcome("approved", made=(candidate.ref, found), note="approved later, with the plan")


def settled(prd: Prd, *, key: str, interview: Interview) -> Prd:
    """The fields that Beadmill owns."""
    owned = {
        "ticket_id": key,
        "status": "draft",
        "source_interview": SourceInterview(content_sha256=interview.sha256),
        "approval": Approval(),
    }
    return prd.model_copy(update=owned)


def review(candidate: Candidate[Prd]) -> Review[Prd]:
    return Review(candidate.document, candidate.ref, candidate.coverage, candidate.changes)
