"""The planning nodes on the real journal: SQLite, dispatcher, gates; only the agents are scripted, and answer at once.

The ticket belongs to a project and the database lies where an installation keeps it, so its pages can be looked at.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import sqlalchemy as sa
from clients_for_tests import BEARER, PORT, TOKEN, client_of
from store_for_tests import store_at

from beadmill import app
from beadmill.briefs import Briefs
from beadmill.domain.ended import Replied, SessionRef
from beadmill.engine.dispatch import Dispatcher
from beadmill.nodes.beads import BeadsNode
from beadmill.nodes.interview import InterviewNode
from beadmill.nodes.prd import PrdNode
from beadmill.nodes.scan import ScanNode
from beadmill.operations import logins
from beadmill.operations.ports import Ports
from beadmill.processes.spec import AgentTask, Batch, BoxSpec
from beadmill.settings import RunSettings, Settings
from beadmill.sops.load import load
from beadmill.store import blobs, tables
from beadmill.store.db import Store, Tx
from beadmill.store.journal import runs
from beadmill.web.app import Web
from beadmill.web.security import Door
from beadmill.workspaces.worktrees import Worktrees
from tests.engine.bench import ME, Bench, ManualSession, ManualSessions
from tests.nodes.fakes import Say, table
from tests.nodes.planning_replies import (
    ASK_MORE,
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

KEY = "T-1"
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
SEATS = ("scripted/a", "scripted/b", "scripted/c")
Decision = tuple[str, Any]


def replies() -> dict[str, Any]:
    """Of a story with everything in it: batches, a follow-up in the talk and one of the check, gaps that are revised,
    one that is left for the person, an expansion."""
    return {
        "scan": FOUND,
        "interview_draft": QUESTIONS,
        "interview_vote": votes("interview"),
        "interview_refine": REFINED_QUESTIONS,
        "interview_turn": [BATCH, SECOND, COMPLETE],
        "interview_coverage": [ASK_MORE, CLEAN],
        "full_answers": "answers:\n  - {id: FU1, free_text: A comma}\n",
        "prd_draft": prd(),
        "prd_vote": votes("prd"),
        "prd_refine": prd() + "changes: []\n",
        "prd_coverage": [GAPS, GAPS, CLEAN],
        "prd_revise": [
            prd(title="Save a list, even an empty one") + resolution("updated"),
            prd(title="Save a list, also an empty one") + resolution("updated"),
        ],
        "beads_draft": plan(),
        "beads_vote": votes("beads"),
        "beads_refine": plan() + "changes: []\n",
        "beads_coverage": [GAPS, CLEAN],
        "beads_revise": plan("Write rows and none as CSV") + resolution("updated"),
        "beads_expand": expansion("Write rows and none as CSV"),
    }


SESSIONS = (
    1 + (3 + 3 + 1 + 3 + 2) + (3 * 2 + 3 + 1 + 2 + 1 + 2) + (3 + 3 + 1 + 2 + 1 + 1)
)  # scan, interview, prd, beads
# With an answer, a skip, an edit of an earlier answer, and a gap that the person has fixed.
DECISIONS: Mapping[str, Decision] = {
    "interview.1/batch-1": ("answer", {"answers": {"Q01": {"selected_option_ids": ["staff"]}}}),
    "interview.1/batch-2": (
        "answer",
        {
            "answers": {"Q02": {"free_text": "All"}, "FU1": {"skipped": True, "skip_reason": "Later"}},
            "edits": {"Q01": {"selected_option_ids": ["customers"]}},
        },
    ),
    "interview.1/batch-3": ("answer", {"answers": {"QFF1": {"free_text": "No"}}}),
    "interview.1/batch-4": ("answer", {"answers": {"CFU1": {"free_text": "An empty file"}}}),
    "interview.1/approve-1": ("approve", None),
    "prd.1/approve-1": ("fix_gaps", None),
    "prd.1/approve-2": ("approve", None),
    "beads.1/approve-1": ("approve", None),
}


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


@dataclass
class Planning(Bench):
    """``decisions`` by gate; a gate without one fails the test."""

    decisions: dict[str, Decision] = field(default_factory=lambda: dict(DECISIONS))

    @classmethod
    def at(cls, home: Path, said: Mapping[str, Any] | None = None) -> Planning:
        home.mkdir(mode=0o700, exist_ok=True)
        store = store_at(home / "beadmill.db")
        bench = cls(store, home, Spoken(table({**replies(), **(said or {})})))
        briefs = Briefs()
        for node in (ScanNode(Worktrees(), briefs), InterviewNode(briefs), PrdNode(briefs), BeadsNode(briefs)):
            bench.nodes[node.spec.kind] = node  # type: ignore[assignment]
        return bench

    async def begin(self, repository: Path, *, seats: tuple[str, ...] = SEATS, **council: Any) -> None:
        """The one ticket of the one project."""
        await self.store.write(_ticket)
        work = {
            "key": KEY,
            "title": "Export lists",
            "description": "As CSV.",
            "acceptance": "",
            "project": "T",
            "repository": str(repository),
            "workspace": str(self.home / "ws" / "T" / KEY),
            "branch": f"beadmill/{KEY}",
            "base": "",
        }
        wanted = {"seats": list(seats), "prd_passes": 2, **council}
        settings = RunSettings().overlaid({"council": wanted}).model_dump(mode="json")
        await self.write(
            runs.start,
            run="r1",
            ticket_id=1,
            project_id=1,
            sop="planning",
            body=SOP,
            graph=load(SOP, name="planning").graph,
            settings=settings,
            work=work,
            actor=ME,
        )

    async def until(self, holds: Callable[[], bool], *, seconds: float = 100) -> None:
        """A whole round of a council lies between two gates."""
        await super().until(holds, seconds=seconds)

    async def person(self, until: str = "") -> None:
        """Answers every gate as it opens, until the run has ended or a gate that starts with ``until`` is open."""
        opened = sa.select(tables.gates.c.id).where(tables.gates.c.state == "open")
        while self.run_state() == "active":
            waiting = [str(row.id).split("/", 1)[1] for row in self.rows(opened)]
            for part in waiting:
                if until and part.startswith(until):
                    return
                choice, payload = self.decisions[part.partition("#")[0]]
                await self.answer(part, choice, payload=payload)
            if not waiting:
                await self.until(lambda: bool(self.rows(opened)) or self.run_state() != "active")

    def opened(self) -> None:
        """The store once more, as another process would."""
        self.store = Store(f"sqlite:///{self.home / 'beadmill.db'}")
        self.dispatcher = Dispatcher(
            self.store, self.sessions, self.nodes, lambda text: load(text, name="p").graph, "w"
        )

    async def life(self, crash: type[BaseException]) -> bool:
        """One daemon and the person, until the run has ended (True) or ``crash`` ended the daemon (False)."""
        self.opened()
        assert self.dispatcher is not None
        tasks = {asyncio.ensure_future(self.dispatcher.serve()), asyncio.ensure_future(self.person())}
        _, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.wait(tasks)
        ended = self.run_state() != "active"
        self.store.close()
        for error in (task.exception() for task in tasks if not task.cancelled()):
            if error is not None and not _only(error, crash):
                raise error
        return ended

    def made(self, kind: type[Any]) -> Any:
        def newest(conn: sa.Connection) -> Any:
            row = blobs.newest(conn, "r1", kind.kind)
            assert row is not None
            return kind.parse(blobs.get_blob(conn, row.ref.sha256))

        return self.store.read_now(newest)

    @asynccontextmanager
    async def looked_at(self) -> AsyncIterator[tuple[Ports, httpx2.AsyncClient]]:
        """A second installation on the same home, whose engine does not run: its operations and its pages."""
        quiet = app.build(Settings(home=self.home))
        try:
            async with client_of(Web(quiet.ports, Door(PORT, logins.hashed(TOKEN))), BEARER) as client:
                yield quiet.ports, client
        finally:
            quiet.ports.store.close()


def repository(root: Path) -> Path:
    """A checkout with one commit, and the origin it was pushed to."""
    origin, path = root / "origin.git", root / "checkout"
    identity = ("-c", "user.name=Test Person", "-c", "user.email=person@example.org")
    for where, *args in (
        (root, "init", "-q", "--bare", "-b", "main", str(origin)),
        (root, "init", "-q", "-b", "main", str(path)),
        (path, *identity, "commit", "-q", "--allow-empty", "-m", "first"),
        (path, "remote", "add", "origin", str(origin)),
        (path, "push", "-qu", "origin", "main"),
    ):
        subprocess.run(["git", "-C", str(where), *args], check=True, capture_output=True)
    return path


def _ticket(tx: Tx) -> None:
    tx.run(sa.insert(tables.projects).values(id=1, short="T", name="Lists", created=tx.now))
    tx.run(
        sa.insert(tables.tickets).values(
            id=1, project_id=1, key=KEY, title="Export lists", state="draft", status="draft",
            created=tx.now, updated=tx.now,
        )
    )  # fmt: skip


def _only(error: BaseException, crash: type[BaseException]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_only(one, crash) for one in error.exceptions)
    return isinstance(error, crash)
