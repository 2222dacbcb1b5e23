"""beads: the council's blueprint, covered, expanded into executable beads, approved (reference §5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from beadmill.artifacts.beads import Bead, Beads, Blueprint, BlueprintBead, Dependencies
from beadmill.artifacts.council import Decided, PrdFindings
from beadmill.artifacts.prd import Prd
from beadmill.artifacts.reading.replies import Expansion
from beadmill.artifacts.reading.shapes import BLUEPRINT, EXPANSION
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import ScanReport
from beadmill.briefs import Briefs
from beadmill.council import BEADS, Candidate, Council, Cover, Desk, Draft
from beadmill.domain.bead import check_graph
from beadmill.domain.machine import Phase
from beadmill.domain.values import ArtifactRef, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.nodes._approval import Review, approval
from beadmill.nodes._planning import CouncilConfig, Ground, ground, now, part
from beadmill.settings import GatePolicy, GateSettings

STRICT: Sequence[GatePolicy] = ("required", "auto_when_clean", "off")


class BeadsNode:
    spec = NodeSpec(
        "beads", CouncilConfig, frozenset({"approved"}), reads=(ScanReport, RelevantFiles, Prd), writes=(Beads,)
    )

    def __init__(self, briefs: Briefs) -> None:
        self.briefs = briefs

    async def visit(self, v: Visit, cfg: CouncilConfig, /) -> Outcome:
        prd = await v.get(Prd)
        beside = (await requirements(v, prd),) if "prd" in cfg.together else ()
        where = await ground(v, cfg, self.briefs)
        council = Council(v, BEADS, where.table)
        context: dict[str, object] = {"prd_refs": prd.refs()}

        async def draft(desk: Desk) -> Draft[Blueprint]:
            done = await desk.write(
                "draft",
                "beads_draft",
                BLUEPRINT,
                lambda: (*where.parts, part("prd", prd)),
                context=context,
                questions=BEADS.questions,
            )
            return Draft(desk.position, done.value, None, done.interventions)

        await v.phase(Phase.DRAFTING_BEADS)
        drafts = await council.draft(draft)
        await v.phase(Phase.COUNCIL_VOTING_BEADS)
        tally = await council.vote(drafts, lambda: (*where.parts, part("prd", prd)))
        await v.phase(Phase.REFINING_BEADS)
        first = await council.refine(
            drafts, tally, lambda: (*where.parts, part("prd", prd)), context=context, values={}
        )
        await v.phase(Phase.VERIFYING_BEADS_COVERAGE)
        limit = cfg.passes or v.settings.council.beads_passes
        against = lambda: (part("prd", prd),)  # noqa: E731 - a value of Cover
        cover = Cover(BEADS, where.table, tally.winner, limit, against, lambda plan: plan, context)
        candidate = await cover.loop(v, first)
        plan = _Plan(v, where, prd, cover, v.work.key)
        await v.phase(Phase.EXPANDING_BEADS)
        shown = replace(await plan.expanded(v.at("expand"), candidate), beside=beside)
        await v.phase(Phase.WAITING_BEADS_APPROVAL)
        what = "the requirements and the plan of work" if beside else "the plan of work"
        title = f"Approve {what} for {v.work.key}"
        policy = cfg.policy or _strictest(v.settings.gates, together=bool(beside))
        return await approval(v, shown, title=title, policy=policy, fix=plan.fix, problems=problems)


@dataclass(frozen=True, slots=True)
class _Plan:
    """From a covered blueprint to the beads that are approved, once or again after an Extra Fix."""

    v: Visit
    where: Ground
    prd: Prd
    cover: Cover[Blueprint]
    key: str

    async def expanded(self, v: Visit, candidate: Candidate[Blueprint]) -> Review[Beads]:
        """The winner adds what the blueprint leaves open; Beadmill adds order, inverse edges and the time."""
        blueprint = candidate.document
        done = await Desk(self.where.table, self.cover.winner, v).write(
            "lines",
            "beads_expand",
            EXPANSION,
            lambda: (*self.where.parts, part("prd", self.prd), part("beads_draft", blueprint)),
            context={"blueprint": blueprint},
            check=lambda lines: "\n".join(check_graph(assembled(lines, key=self.key, at="").beads)),
        )
        beads = assembled(done.value, key=self.key, at=await v.step("created-at", now))
        ref = await self.v.put(beads, by=self.where.table.seats[self.cover.winner], parent=candidate.ref)
        restored = [i.detail or i.title for i in done.interventions if i.title == "field restored from the blueprint"]
        warnings = tuple(f"taken from the blueprint again: {one}" for one in restored)
        return _review(beads, ref, candidate, warnings)

    async def fix(self, seen: Review[Beads], turn: int, decisions: tuple[Decided, ...]) -> Review[Beads]:
        """The revision starts from what the person saw, their edits included; it is expanded again when it changed."""
        if seen.beside and seen.beside[0].document != self.prd:
            return await self._on(seen.beside[0].document).fix(seen, turn, decisions)
        await self.v.phase(Phase.VERIFYING_BEADS_COVERAGE)
        before = blueprint_of(seen.document)
        fixed = await self.cover.fix(self.v, Candidate(before, seen.ref, seen.coverage), turn, decisions)
        if fixed.document == before:
            await self.v.phase(Phase.WAITING_BEADS_APPROVAL)
            kept = _review(seen.document, seen.ref, fixed, seen.warnings)
            return replace(kept, beside=seen.beside)
        await self.v.phase(Phase.EXPANDING_BEADS)
        again = await self.expanded(self.v.at(f"fix-{turn}/expand"), fixed)
        await self.v.phase(Phase.WAITING_BEADS_APPROVAL)
        return replace(again, beside=seen.beside)

    def _on(self, prd: Prd) -> _Plan:
        """The same against the requirements as a person has edited them at the gate they share."""
        cover = replace(self.cover, against=lambda: (part("prd", prd),), context={"prd_refs": prd.refs()})
        return replace(self, prd=prd, cover=cover)


async def requirements(v: Visit, prd: Prd) -> Review[Prd]:
    """The requirements that are approved with the plan, with what their own checks left open."""
    open_ = await v.get(PrdFindings)
    return Review(prd, await v.found(Prd), open_.coverage)


def _strictest(gates: GateSettings, *, together: bool) -> GatePolicy:
    wanted = (gates.prd, gates.beads) if together else (gates.beads,)
    return next(policy for policy in STRICT if policy in wanted)


def _review(
    beads: Beads, ref: ArtifactRef, candidate: Candidate[Blueprint], warnings: tuple[str, ...]
) -> Review[Beads]:
    return Review(beads, ref, candidate.coverage, candidate.changes, warnings)


def assembled(lines: Sequence[Expansion], *, key: str, at: str) -> Beads:
    """The fields that Beadmill owns: priority by position, the ticket, inverse edges, the time."""
    blocks = {line.id: tuple(o.id for o in lines if line.id in o.dependencies.blocked_by) for line in lines}
    return Beads(
        beads=tuple(
            Bead.model_validate(
                {
                    **{name: getattr(line, name) for name in type(line).model_fields},
                    "priority": n,
                    "external_ref": key,
                    "dependencies": Dependencies(
                        blocked_by=tuple(dict.fromkeys(line.dependencies.blocked_by)), blocks=blocks[line.id]
                    ),
                    "created_at": at,
                }
            )
            for n, line in enumerate(lines, 1)
        )
    )


def blueprint_of(beads: Beads) -> Blueprint:
    """Part 1 of every bead, as it is now."""
    names = BlueprintBead.model_fields
    return Blueprint(beads=tuple(BlueprintBead.model_validate({n: getattr(b, n) for n in names}) for b in beads.beads))


def problems(shown: Review[Beads]) -> tuple[str, ...]:
    """Why this plan cannot be approved. Inverse edges are derived and no reason to refuse a person's plan. Requirements
    that were edited beside it may have lost what a bead is for."""
    beads = shown.document.beads
    lost = [
        f"bead {bead.id}: the requirements have no {ref} any more; edit one of them, or send the run back to the plan"
        for one in shown.beside
        for bead in beads
        for ref in bead.prd_refs
        if ref not in one.document.refs()
    ]
    return (*check_graph(beads), *lost)
