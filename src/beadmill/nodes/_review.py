"""The independent review of the whole change, or of one bead, by another seat than the implementer's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from beadmill.artifacts.delivery import Finding, Review
from beadmill.artifacts.reading.shapes import REVIEW
from beadmill.briefs import Briefs, PartText
from beadmill.domain.values import Access, Brief
from beadmill.engine.port import Visit
from beadmill.engine.structured import structured
from beadmill.errors import Blocked, TurnFailed
from beadmill.nodes._seating import reviewer
from beadmill.processes.spec import AgentTask
from beadmill.workspaces.worktrees import Tree


class Reviewer:
    def __init__(self, briefs: Briefs) -> None:
        self.briefs = briefs

    async def review(self, v: Visit, tree: Tree, parts: Sequence[PartText]) -> Review | None:
        """Of the whole change."""
        return await self._asked(v, tree, parts, policy=v.settings.build.review, template="review")

    async def bead(self, v: Visit, tree: Tree, parts: Sequence[PartText], *, subject: str) -> Review | None:
        """Of one bead as it lies in the tree."""
        policy = v.settings.build.bead_review
        return await self._asked(v, tree, parts, policy=policy, template="bead_review", subject=subject)

    async def _asked(
        self, v: Visit, tree: Tree, parts: Sequence[PartText], *, policy: str, template: str, subject: str = ""
    ) -> Review | None:
        """None = policy off. Under ``fail`` a reviewer that cannot answer blocks; else the verdict is unavailable."""
        if policy == "off":
            return None
        seat = reviewer(v.settings)
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        try:
            done = await structured(
                v,
                "review",
                shape=REVIEW,
                task=partial(self._task, v, tree),
                brief=lambda: briefs.write(
                    template, parts, ticket=v.work.key, subject=subject, seat=str(seat), shape=REVIEW
                ),
                retries=v.settings.council.structured_retries,
                briefs=briefs,
            )
        except (TurnFailed, Blocked) as failed:
            if policy == "fail" or not _survivable(failed):
                raise
            return Review(verdict="unavailable", summary=failed.message, reviewer=str(seat))
        return done.value.model_copy(update={"reviewer": str(seat)})

    def _task(self, v: Visit, tree: Tree, brief: Brief) -> AgentTask:
        return AgentTask(
            seat=reviewer(v.settings),
            brief=brief,
            access=Access.READ,
            cwd=Path(tree.path),
            budget=timedelta(seconds=v.settings.build.iteration_s),
            idle=timedelta(seconds=v.settings.build.idle_s),
        )


def serious(review: Review | None) -> tuple[Finding, ...]:
    """What a request for changes stands on; empty when there is none."""
    if review is None or review.verdict != "request_changes":
        return ()
    grave = tuple(finding for finding in review.findings if finding.severity in ("blocker", "major"))
    return grave or review.findings or (Finding(severity="major", text=review.summary),)


def _survivable(failed: Blocked) -> bool:
    return isinstance(failed, TurnFailed) or failed.code in ("AGENT_OUTPUT_INVALID", "CONTEXT_OVER_BUDGET")
