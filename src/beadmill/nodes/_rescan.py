"""The files that matter, looked for by the implementer; again when a rework starts on a base that has moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from beadmill.artifacts.reading.shapes import RELEVANT_FILES
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.briefs import Briefs, PartText
from beadmill.domain.values import Access, Brief, Event
from beadmill.engine.port import Visit
from beadmill.engine.structured import Structured, structured
from beadmill.errors import BeadmillError, Blocked
from beadmill.nodes._planning import listed, ticket_part
from beadmill.nodes._seating import implementer
from beadmill.processes.spec import AgentTask
from beadmill.workspaces.worktrees import Tree

MOST_PATHS = 200  # of the moved base, in the brief


@dataclass(frozen=True, slots=True)
class Moved:
    """Where the base is now and what changed there; an empty ``tip`` = where it was, or nobody can tell."""

    tip: str = ""
    paths: tuple[str, ...] = ()


class Based(Protocol):
    """The part of Worktrees that tells whether the base moved."""

    async def fetch_base(self, tree: Tree) -> str: ...

    async def between(self, tree: Tree, since: str, until: str) -> Sequence[str]: ...


async def scan(v: Visit, cwd: str, briefs: Briefs, *, moved: Moved | None = None) -> Structured[RelevantFiles]:
    """One session that reads in ``cwd``. Durable name ``files``."""
    council = v.settings.council
    budget = timedelta(seconds=council.deadline_s)
    within = briefs.within(v.settings.context_tokens, v.prompts)

    def brief() -> Brief:
        return within.write("scan", [_ticket(v, moved)], ticket=v.work.key, shape=RELEVANT_FILES)

    def task(given: Brief) -> AgentTask:
        seat = implementer(v.settings)
        return AgentTask(seat=seat, brief=given, access=Access.READ, cwd=Path(cwd), budget=budget, idle=budget)

    retries = council.structured_retries
    return await structured(
        v, "files", shape=RELEVANT_FILES, task=task, brief=brief, retries=retries, briefs=within
    )  # fmt: skip


def _ticket(v: Visit, moved: Moved | None) -> PartText:
    told = ticket_part(v.work)
    if moved is None:
        return told
    paths = listed(moved.paths[:MOST_PATHS])
    more = f"\n\nThe base branch moved to {moved.tip} since the files were listed. Changed there:\n{paths}\n"
    return PartText(told.name, told.text + more)


async def refreshed(v: Visit, tree: Tree, based: Based, briefs: Briefs) -> RelevantFiles | None:
    """The list made anew, once, when this visit is a rework and the base is not where the list was made. Without a scan
    before, with a base that stands still or cannot be asked, and when nobody could list files: None, the old one holds.
    """
    if v.ref.n == 1:
        return None
    here = v.at("rescan")
    try:
        known = await here.get(RelevantFiles)
    except Blocked:
        return None
    moved = await here.step("base", _moved, based, tree, known.base_commit)
    if not moved.tip:
        return None
    try:
        found = await scan(here, tree.path, briefs, moved=moved)
    except Blocked as failed:
        if failed.code != "AGENT_OUTPUT_INVALID":
            raise
        await here.emit("kept", Event("scan.kept", {"tip": moved.tip, "why": failed.message}))
        return None
    files = found.value.model_copy(update={"ticket_id": v.work.key, "base_commit": moved.tip})
    await v.put(files, by=implementer(v.settings))
    return files


async def _moved(based: Based, tree: Tree, since: str) -> Moved:
    if not since:
        return Moved()
    try:
        tip = await based.fetch_base(tree)
        return Moved() if tip == since else Moved(tip, tuple(await based.between(tree, since, tip)))
    except BeadmillError:  # offline: integrating will say so when it matters
        return Moved()
