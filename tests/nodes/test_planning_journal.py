"""The planning nodes on the real journal: SQLite, dispatcher, gates; only the agents are scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from beadmill import crashpoints
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.interview import Interview, InterviewSummary
from beadmill.artifacts.prd import Prd
from beadmill.briefs import Briefs
from beadmill.crashpoints import Crashed
from beadmill.domain.ended import Replied, SessionRef
from beadmill.engine.dispatch import Dispatcher
from beadmill.nodes.beads import BeadsNode
from beadmill.nodes.interview import InterviewNode
from beadmill.nodes.prd import PrdNode
from beadmill.nodes.scan import ScanNode
from beadmill.processes.spec import AgentTask, Batch, BoxSpec
from beadmill.settings import RunSettings
from beadmill.sops.load import load
from beadmill.store import blobs, tables
from beadmill.store.db import Store
from beadmill.store.journal import amends, runs
from beadmill.workspaces.worktrees import Worktrees
from tests.engine.bench import ME, Bench, ManualSession, ManualSessions
from tests.nodes.fakes import Say, table
from tests.nodes.planning_replies import (
    BATCH,
    CLEAN,
    COMPLETE,
    GAPS,
    QUESTIONS,
    REFINED_QUESTIONS,
    SECOND,
    expansion,
    plan,
    prd,
    resolution,
    votes,
)
from tests.nodes.test_scan_node import FOUND

SOP = """
title: Planning
start: scan
nodes:
  - {id: scan, kind: scan}
  - {id: interview, kind: interview}
  - {id: prd, kind: prd}
  - {id: beads, kind: beads, ends: [approved]}
edges:
  - {from: scan, outcome: ok, to: interview}
  - {from: interview, outcome: approved, to: prd}
  - {from: prd, outcome: approved, to: beads}
"""
SEATS = ["scripted/a", "scripted/b", "scripted/c"]


@dataclass
class Spoken(ManualSessions):
    """Every session has ended by the time somebody looks."""

    say: Say

    def __init__(self, say: Say) -> None:
        super().__init__()
        self.say = say

    async def attach(self, token: str, work: AgentTask | Batch, box: BoxSpec) -> ManualSession:
        known = token in self.by_token
        session = await super().attach(token, work, box)
        assert isinstance(work, AgentTask)
        if not known:
            said = self.say(work)
            ref, worked = SessionRef(token, f"talk-{len(self.by_token)}"), timedelta(seconds=30)
            session.end = (
                Replied(session=ref, worked=worked, text=said) if isinstance(said, str) else replace(said, session=ref)
            )
        return session


def replies() -> dict[str, Any]:
    return {
        "scan": FOUND,
        "interview_draft": QUESTIONS,
        "interview_vote": votes("interview"),
        "interview_refine": REFINED_QUESTIONS,
        "interview_turn": [BATCH, SECOND, COMPLETE],
        "interview_coverage": CLEAN,
        "full_answers": "answers:\n  - {id: FU1, free_text: A comma}\n",
        "prd_draft": prd(),
        "prd_vote": votes("prd"),
        "prd_refine": prd() + "changes: []\n",
        "prd_coverage": [GAPS, CLEAN],
        "prd_revise": prd(title="Save a list, even an empty one") + resolution("updated"),
        "beads_draft": plan(),
        "beads_vote": votes("beads"),
        "beads_refine": plan() + "changes: []\n",
        "beads_coverage": CLEAN,
        "beads_expand": expansion(),
    }


@pytest.fixture
def planning(tmp_path: Path) -> Bench:
    store = Store(f"sqlite:///{tmp_path / 'journal.db'}")
    store.migrate()
    bench = Bench(store, tmp_path, Spoken(table(replies())))
    briefs = Briefs()
    for node in (ScanNode(Worktrees(), briefs), InterviewNode(briefs), PrdNode(briefs), BeadsNode(briefs)):
        bench.nodes[node.spec.kind] = node  # type: ignore[assignment]
    return bench


async def begin(bench: Bench, repository: Path, seats: Sequence[str] = SEATS) -> None:
    work = {
        "key": "T-1",
        "title": "Export lists",
        "description": "As CSV.",
        "acceptance": "",
        "project": "T",
        "repository": str(repository),
        "workspace": str(bench.home / "ws" / "T" / "T-1"),
        "branch": "beadmill/T-1",
        "base": "",
    }
    settings = RunSettings().overlaid({"council": {"seats": list(seats)}}).model_dump(mode="json")
    graph = load(SOP, name="planning").graph
    await bench.write(
        runs.start,
        run="r1",
        ticket_id=None,
        project_id=None,
        sop="planning",
        body=SOP,
        graph=graph,
        settings=settings,
        work=work,
        actor=ME,
    )


def made(bench: Bench, kind: type[Any]) -> Any:
    def newest(conn: sa.Connection) -> Any:
        row = blobs.newest(conn, "r1", kind.kind)
        assert row is not None
        return kind.parse(blobs.get_blob(conn, row.ref.sha256))

    return bench.store.read_now(newest)


SESSIONS = 1 + (3 + 3 + 1 + 3 + 1) + (3 * 2 + 3 + 1 + 3) + (3 + 3 + 1 + 1 + 1)  # scan, interview, prd, beads
DECISIONS: dict[str, tuple[str, Any]] = {
    "interview.1/batch-1": ("answer", {"answers": {"Q01": {"selected_option_ids": ["staff"]}}}),
    "interview.1/batch-2": ("answer", {"answers": {"Q02": {"free_text": "All"}}}),
    "interview.1/batch-3": ("answer", {"answers": {"QFF1": {"free_text": "No"}}}),
    "interview.1/approve-1": ("approve", None),
    "prd.1/approve-1": ("approve", None),
    "beads.1/approve-1": ("approve", None),
}


async def person(bench: Bench) -> None:
    """Answers every gate as it opens, until the run has ended. A gate without a decision fails the test."""
    opened = sa.select(tables.gates.c.id).where(tables.gates.c.state == "open")
    while bench.run_state() == "active":
        waiting = [str(row.id).split("/", 1)[1] for row in bench.rows(opened)]
        for part in waiting:
            choice, payload = DECISIONS[part.partition("#")[0]]
            await bench.answer(part, choice, payload=payload)
        if not waiting:
            await bench.until(lambda: bool(bench.rows(opened)) or bench.run_state() != "active")


async def test_a_ticket_is_planned_from_scan_to_beads_on_the_real_journal(planning: Bench, repo: Path) -> None:
    async with planning.daemon():
        await begin(planning, repo)
        await person(planning)
    assert planning.run_state() == "completed"
    assert [q.id for q in made(planning, Interview).questions] == ["Q01", "Q02", "FU1", "QFF1"]
    assert made(planning, Prd).epics[0].user_stories[0].title == "Save a list, even an empty one"
    assert [bead.id for bead in made(planning, Beads).beads] == ["write-rows", "command"]


async def until_asked(bench: Bench, part: str) -> None:
    """Answers every gate on the way to the one of ``part``."""
    opened = sa.select(tables.gates.c.id).where(tables.gates.c.state == "open")
    while True:
        await bench.until(lambda: bool(bench.rows(opened)))
        waiting = [str(row.id).split("/", 1)[1] for row in bench.rows(opened)]
        if any(name.startswith(part) for name in waiting):
            return
        for name in waiting:
            node, _, gate = name.partition("/")
            choice, payload = DECISIONS[f"{node.partition('.')[0]}.1/{gate.partition('#')[0]}"]
            await bench.answer(name, choice, payload=payload)


async def amended(bench: Bench, kind: type[Any], **changed: Any) -> tuple[Any, tuple[str, ...]]:
    """A person edits what holds of this kind, and what begins because of it."""
    old = bench.store.read_now(lambda conn: blobs.newest(conn, "r1", kind.kind))
    assert old is not None
    document = made(bench, kind).model_copy(update=changed)
    graph = load(SOP, name="planning").graph
    *_, begun = await bench.write(amends.amend, graph, old, document, actor=ME, note="", key="k")
    return document, begun


async def test_b9_an_edited_interview_restarts_the_requirements_and_an_edited_prd_the_plan(
    planning: Bench, repo: Path
) -> None:
    said = {**replies(), "prd_coverage": CLEAN}
    planning.sessions = Spoken(table(said))
    async with planning.daemon():
        await begin(planning, repo, SEATS[:1])
        await until_asked(planning, "beads.1/approve")
        interview, begun = await amended(planning, Interview, summary=InterviewSummary(goals=("Export all",)))
        assert begun == ("r1/prd.2",)
        await until_asked(planning, "beads.2/approve")
        assert made(planning, Prd).source_interview.content_sha256 == interview.sha256
        prd, begun = await amended(planning, Prd, risks=("A person wrote this.",))
        assert begun == ("r1/beads.3",)
        await until_asked(planning, "beads.3/approve")
        await planning.state("beads.3", "parked")
        assert made(planning, Prd) == prd
    (work,) = [s.work for token, s in planning.sessions.by_token.items() if "/beads.3/draft/seat-1" in token]
    assert isinstance(work, AgentTask)
    assert "A person wrote this." in work.brief.text
    states = {"beads.1": "superseded", "beads.2": "superseded", "beads.3": "parked", "prd.1": "superseded"}
    assert planning.visits() == {**states, "scan.1": "done", "interview.1": "done", "prd.2": "done"}


class Crashes:
    """Every crash point kills the daemon the first time it is reached."""

    def __init__(self) -> None:
        self.at: list[str] = []

    def __call__(self, name: str) -> None:
        if name not in self.at:
            self.at.append(name)
            raise Crashed(name)


async def life(bench: Bench) -> bool:
    """One daemon and the person, until the run has ended (True) or the daemon crashed."""
    bench.store = Store(f"sqlite:///{bench.home / 'journal.db'}")
    dispatcher = Dispatcher(bench.store, bench.sessions, bench.nodes, lambda text: load(text, name="p").graph, "w")
    bench.dispatcher = dispatcher
    tasks = {asyncio.ensure_future(dispatcher.serve()), asyncio.ensure_future(person(bench))}
    _, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    await asyncio.wait(tasks)
    ended = bench.run_state() != "active"
    bench.store.close()
    for error in (task.exception() for task in tasks if not task.cancelled()):
        if error is not None and not _crash(error):
            raise error
    return ended


def _crash(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_crash(one) for one in error.exceptions)
    return isinstance(error, Crashed)


async def test_a_daemon_that_crashes_at_every_durable_name_asks_no_agent_twice(
    planning: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begin(planning, repo)
    crashes = Crashes()
    monkeypatch.setenv("BEADMILL_TESTING", "1")
    monkeypatch.setattr(crashpoints, "on_reach", crashes)
    while not await life(planning):
        pass
    assert len(crashes.at) > 100
    assert len(planning.sessions.by_token) == SESSIONS
