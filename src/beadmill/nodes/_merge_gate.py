"""The gate at which a change waits: what it shows, what may be chosen, and what a choice for rework is called."""

from __future__ import annotations

from dataclasses import dataclass

from beadmill.artifacts.delivery import IntegrationReport, PullRequestReport
from beadmill.domain.values import ArtifactRef, GateKind, GateRequest
from beadmill.forges.news import News, shown
from beadmill.nodes._publish import Published
from beadmill.workspaces.worktrees import Tree


@dataclass(frozen=True, slots=True)
class Open:
    """The change as it waits for a decision, and the documents that the gate shows."""

    tree: Tree
    published: Published
    integration: IntegrationReport
    report: PullRequestReport
    shows: tuple[ArtifactRef, ...]


def gate(here: Open, problem: str, found: News, *, carried: bool) -> GateRequest:
    """``carried``: a person's decision for the same patch stands, made before the base moved. ``found`` is what came up
    on the forge: it can be made work of with one choice."""
    published = here.published
    by = here.report.decided_by if carried else ""
    return GateRequest(
        GateKind.MERGE,
        f"{_said(found)} #{published.number}: {published.title}",
        (*(("rework",) if found.asks else ()), "merge", "close", "request_changes", "look"),
        shows=here.shows,
        detail={
            "url": published.url,
            "number": published.number,
            "head": published.head,
            "problem": problem,
            "news": shown(found),
            "handled": list(here.report.handled),
        },
        auto="merge" if by else None,
        why=f"{by} decided to merge this same patch before {here.tree.base} moved" if by else "",
    )


def _said(found: News) -> str:
    """What the change waits for, the loudest first."""
    if found.failed:
        return "Checks fail on"
    return "There are remarks on" if found.remarks else "Merge"


def first_line(note: str, found: News) -> str:
    """The line that names the bead."""
    if note.strip():
        return note.strip().splitlines()[0][:120]
    if found.remarks:
        return found.remarks[0].body.strip().splitlines()[0][:120]
    return f"{', '.join(name.split(' ')[0] for name in found.failed)} must pass"[:120]
