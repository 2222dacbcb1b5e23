"""Failures become beads: one model call plans them, all are stored, then they join the plan at once (reference §9.3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from beadmill.artifacts.beads import Bead, Beads, Dependencies
from beadmill.artifacts.qa import FixBead, Group, QaChecklist, QaFixBeads, QaItem, QaResults, groups
from beadmill.artifacts.reading.shapes import QA_FIX_BEADS
from beadmill.briefs import Briefs, PartText
from beadmill.domain.values import Access, Brief, VisitRef
from beadmill.engine.port import Visit
from beadmill.engine.structured import structured
from beadmill.errors import Blocked
from beadmill.nodes._seating import implementer
from beadmill.processes.spec import AgentTask
from beadmill.workspaces.worktrees import Tree

CODE = "MANUAL_QA_FIX_BEADS_FAILED"
LABEL = "manual-qa"


def reading(v: Visit, tree: Tree) -> Callable[[Brief], AgentTask]:
    """A fresh session of the implementer that may look and not touch."""

    def task(brief: Brief) -> AgentTask:
        return AgentTask(
            seat=implementer(v.settings),
            brief=brief,
            access=Access.READ,
            cwd=Path(tree.path),
            budget=timedelta(seconds=v.settings.build.iteration_s),
            idle=timedelta(seconds=v.settings.build.idle_s),
        )

    return task


class Fixes:
    def __init__(self, briefs: Briefs) -> None:
        self.briefs = briefs

    async def write(
        self, v: Visit, tree: Tree, checklist: QaChecklist, results: QaResults, material: Sequence[PartText]
    ) -> QaFixBeads:
        """One candidate per group, or none at all. Raises Blocked("MANUAL_QA_FIX_BEADS_FAILED"): a retry does this call
        again, with the same results."""
        wanted = groups(checklist, results)
        refs = {group.id: _refs(checklist, group) for group in wanted}
        parts = [*material, _failures(checklist, results, wanted)]
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        try:
            done = await structured(
                v, "plan", shape=QA_FIX_BEADS, task=reading(v, tree),
                brief=partial(briefs.write, "qa_fix_beads", parts, ticket=v.work.key, shape=QA_FIX_BEADS),
                retries=v.settings.council.structured_retries, briefs=briefs, context={"groups": refs},
            )  # fmt: skip
        except Blocked as failed:
            if failed.code != "AGENT_OUTPUT_INVALID":
                raise
            raise _failed(v, failed.message, kept=failed.kept) from failed
        if not await v.step("looked", _looked, v):
            raise _failed(v, "the session read no file of the repository before it planned")
        ids = tuple(_id(v.ref, group) for group in wanted)
        return QaFixBeads(version=checklist.version, ids=ids, candidates=done.value)


async def _looked(v: Visit) -> bool:
    return bool(await v.tools())


def _failed(v: Visit, why: str, *, kept: str = "") -> Blocked:
    return Blocked(
        CODE,
        f"no beads were made of what failed: {why}",
        forget=(v.scope,),
        kept="; ".join(text for text in ("your results; no bead and no ticket was made of them", kept) if text),
        next="retry plans them again from the same results",
    )


def _refs(checklist: QaChecklist, group: Group) -> list[str]:
    items = [item for item in checklist.items if item.id in group.items]
    return list(dict.fromkeys(story for item in items for story in item.stories))


def _id(visit: VisitRef, group: Group) -> str:
    """The same failures of the same round are always the same bead."""
    sha = hashlib.sha256(f"{visit} {' '.join(group.items)}".encode()).hexdigest()
    return f"qa-v{visit.n}-{sha[:12]}"


def _failures(checklist: QaChecklist, results: QaResults, wanted: Sequence[Group]) -> PartText:
    told = [
        {
            "groupId": group.id,
            "prdRefs": _refs(checklist, group),
            "items": [_failure(item, results) for item in checklist.items if item.id in group.items],
        }
        for group in wanted
    ]
    return PartText("qa_failures", json.dumps(told, indent=1, ensure_ascii=False))


def _failure(item: QaItem, results: QaResults) -> dict[str, object]:
    result = results.of(item.id)
    files = [f"{one.name} ({one.media}, {one.size} bytes)" for one in results.evidence if one.item == item.id]
    told: dict[str, object] = {
        "id": item.id,
        "title": item.title,
        "behavior": item.behavior,
        "actions": list(item.actions),
        "expected": item.expected_result,
        "observed": result.observation,
        "note": result.note,
        "beads": list(item.bead_refs),
        "links": [f"{link.url} {link.details}".strip() for link in result.links],
        "evidence": files,
    }
    return {name: value for name, value in told.items() if value}


def with_fixes(plan: Beads, fixes: QaFixBeads, made: Sequence[Group], *, ticket: str) -> Beads:
    """The plan with the beads at its end, behind the highest priority. Done twice, the same plan."""
    others = tuple(bead for bead in plan.beads if bead.id not in fixes.ids)
    first = max((bead.priority for bead in others), default=0) + 1
    by_group = {one.group_id: name for one, name in zip(fixes.candidates, fixes.ids, strict=True)}
    items = {group.id: group.items for group in made}
    beads = tuple(
        _bead(one, name, by_group, first + n, f"{ticket} v{fixes.version}: {', '.join(items[one.group_id])}")
        for n, (one, name) in enumerate(zip(fixes.candidates, fixes.ids, strict=True))
    )
    return plan.model_copy(update={"beads": (*others, *beads)})


def _bead(one: FixBead, name: str, by_group: dict[str, str], priority: int, origin: str) -> Bead:
    return Bead(
        id=name,
        title=one.title,
        prd_refs=one.prd_refs,
        description=one.description,
        context_guidance=one.context_guidance,
        acceptance_criteria=one.acceptance_criteria,
        tests=one.tests,
        test_commands=one.test_commands,
        test_command_reason=one.test_command_reason,
        priority=priority,
        issue_type="qa-fix",
        labels=tuple(dict.fromkeys((LABEL, *one.labels))),
        dependencies=Dependencies(blocked_by=tuple(by_group[group] for group in one.blocked_by_group_ids)),
        target_files=one.target_files,
        test_files=one.test_files,
        interfaces=one.interfaces,
        qa_origin=origin,
    )
