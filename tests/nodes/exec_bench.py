"""A bench for execution nodes: the real engine on SQLite, real git, real command batches; agents are functions.

Agents are called once per session with their task; they may edit files below ``task.cwd`` and answer with text or with
an end. The engine activates a node from its first line after every session, batch and answer.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from store_for_tests import store_at

from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Bead, Beads
from beadmill.artifacts.prd import Epic, Prd, Product, Story
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import CommandRun, ProjectCommands, Readiness, SetupPlan, SetupProfile
from beadmill.briefs import Briefs
from beadmill.domain.bead import Attempt
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import Ended, Lapsed, Lost, Ran, Replied, SessionRef
from beadmill.domain.values import SYSTEM, Actor, Json, Outcome
from beadmill.engine.dispatch import Dispatcher
from beadmill.engine.port import Node, NodeSpec, Visit
from beadmill.forges.local import LocalForge
from beadmill.processes.contract import Servers, Session
from beadmill.processes.sessions import FolderSessions
from beadmill.processes.spec import AgentEvent, AgentTask, Batch, BoxSpec, EventKind, Order
from beadmill.settings import RunSettings
from beadmill.sops.load import load
from beadmill.store import blobs, tables
from beadmill.store.db import Store
from beadmill.store.journal import attempts, gates, runs
from beadmill.store.ledger import Changes, Facts, Ledger
from beadmill.workspaces.worktrees import Worktrees

D = TypeVar("D", bound=Document)
ME = Actor("user", "ada", "test")
Say = Callable[[AgentTask], "str | Ended"]
KEY = "APP-1"


@dataclass(slots=True)
class Told:
    """A session that has ended when it is looked at first."""

    token: str
    end: Ended
    folder: Path
    said: tuple[AgentEvent, ...] = ()

    async def events(self, after: int = 0) -> AsyncIterator[tuple[int, AgentEvent]]:
        for n, event in enumerate(self.said, 1):
            yield n, event

    async def order(self, order: Order) -> None:
        return None

    def ended(self) -> Ended | Ran | Lost | None:
        return self.end

    def live(self) -> bool:
        return False

    def left(self) -> bool:
        return False

    def wake(self) -> bool:
        return False

    async def wait(self) -> Ended | Ran | Lost:
        return self.end

    async def stop(self, reason: str) -> None:
        return None


@dataclass(slots=True)
class Desk:
    """Sessions: batches are real, agents are ``say`` by template; those of a template in ``look`` read a file."""

    batches: FolderSessions
    says: dict[str, list[Say]] = field(default_factory=dict)
    told: dict[str, Told] = field(default_factory=dict)
    tasks: list[AgentTask] = field(default_factory=list)
    look: set[str] = field(default_factory=lambda: {"qa_fix_beads"})

    async def attach(self, token: str, work: AgentTask | Batch, box: BoxSpec) -> Session:
        if isinstance(work, Batch):
            return await self.batches.attach(token, work, box)
        if token not in self.told:
            self.tasks.append(work)
            read = AgentEvent(datetime.now(UTC), EventKind.TOOL, {"name": "read", "input": "greet.py"})
            said = (read,) if work.brief.template in self.look else ()
            self.told[token] = Told(token, self._say(token, work), self.batches.folder(token), said)
        return self.told[token]

    def _say(self, token: str, task: AgentTask) -> Ended:
        queue = self.says.get(task.brief.template)
        assert queue, f"nobody answers {task.brief.template}: {task.brief.text[:200]}"
        said = (queue.pop(0) if len(queue) > 1 else queue[0])(task)
        ref = SessionRef(token, f"talk-{len(self.told)}")
        return Replied(session=ref, text=said, worked=timedelta(seconds=1)) if isinstance(said, str) else said

    @property
    def servers(self) -> Servers:
        return self.batches.servers

    def find(self, token: str) -> Session | None:
        return self.told.get(token) or self.batches.find(token)

    async def sweep_gone(self, token: str) -> None:
        await self.batches.sweep_gone(token)

    def briefs(self, template: str) -> list[str]:
        return [task.brief.text for task in self.tasks if task.brief.template == template]


@dataclass(slots=True)
class Seeder:
    """Stands for planning: puts documents and lets a person approve the beads."""

    documents: Sequence[Document]
    spec: NodeSpec = field(default_factory=lambda: NodeSpec("seed", dict, frozenset({"ok"})))

    async def visit(self, v: Visit, cfg: Any, /) -> Outcome:
        for document in self.documents:
            await v.put(document, by=SYSTEM)
        return Outcome("ok")


@dataclass(slots=True)
class Bench:
    store: Store
    home: Path
    repository: Path
    desk: Desk
    nodes: dict[str, Node] = field(default_factory=dict)
    trees: Worktrees = field(default_factory=Worktrees)
    dispatcher: Dispatcher | None = None

    @classmethod
    def make(cls, home: Path, repository: Path) -> Bench:
        if not (repository / ".gitignore").exists():
            put(repository, {".gitignore": "__pycache__/\n"})
            publish(repository)
        store = store_at(home / "journal.db")
        host = {"host": "beadmill.workspaces.sandboxes.host:HostSandbox"}
        return cls(store, home, repository, Desk(FolderSessions(home / "sessions", adapters={}, sandboxes=host)))

    @property
    def parts(self) -> dict[str, Any]:
        """What node constructors take."""
        return {"trees": self.trees, "ledger": Ledger(self.store), "briefs": Briefs()}

    @property
    def outside(self) -> dict[str, Any]:
        return {"forge": lambda _work: LocalForge(self.repository), "facts": Facts(self.store)}

    @property
    def changes(self) -> Changes:
        return Changes(self.store)

    @property
    def workspace(self) -> Path:
        return self.home / "workspaces" / "APP" / KEY

    @property
    def tree(self) -> Path:
        return self.workspace / "tree"

    def on(self, template: str, *says: Say | str) -> None:
        """The answers of a template in order; the last one answers for ever."""
        self.desk.says[template] = [say if callable(say) else _always(say) for say in says]

    async def start(self, sop: str, **settings: Json) -> None:
        await self.begin(sop, settings)

    async def begin(self, sop: str, settings: dict[str, Json], *, run: str = "r1", key: str = KEY) -> None:
        loaded = load(sop, name="test")
        base = {"council": {"seats": ["scripted/a", "scripted/b"]}, "gates": {"setup": "off"}, "sandbox": "host"}
        frozen = RunSettings().overlaid(base, settings).model_dump(mode="json")
        work = {
            "key": key, "title": "Add a greeting", "description": "Say hello.", "acceptance": "", "project": "APP",
            "repository": str(self.repository), "workspace": str(self.workspace.with_name(key)), "branch": f"beadmill/{key}", "base": "",
        }  # fmt: skip
        await self.store.write(
            lambda tx: runs.start(
                tx, run=run, ticket_id=None, project_id=None, sop="test", body=sop, graph=loaded.graph,
                settings=frozen, work=work, actor=ME,
            )
        )  # fmt: skip

    def dispatching(self) -> Dispatcher:
        """A dispatcher as a freshly started daemon has it."""
        self.dispatcher = Dispatcher(self.store, self.desk, self.nodes, lambda text: load(text, name="t").graph, "w1")
        return self.dispatcher

    @asynccontextmanager
    async def daemon(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self.dispatching().serve())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            self.store.close()

    async def until(self, holds: Callable[[], bool], seconds: float = 100) -> None:
        try:
            async with asyncio.timeout(seconds):
                async for _ in self.store.events.subscribe(every=lambda: 0.05, rest=0.05):
                    if holds():
                        return
        except TimeoutError:
            raise AssertionError(f"visits {self.visits()}, gates {[dict(g) for g in self.gates()]}") from None

    async def ends(self) -> None:
        """Until the run is over or somebody is asked."""
        await self.until(lambda: self.run_state() != "active" or bool(self.gates()))

    async def gate(self) -> sa.RowMapping:
        await self.ends()
        found = self.gates()
        assert len(found) == 1, f"no gate is open: {self.visits()}"
        return found[0]

    async def answer(self, choice: str, **more: Any) -> None:
        await self.decide(await self.gate(), choice, **more)

    async def decide(self, row: sa.RowMapping, choice: str, **more: Any) -> None:
        """Said twice, as after a crash in the middle of the write, it is one answer."""
        wanted = {"etag": row["etag"], "key": f"k-{row['id']}", "actor": ME, **more}
        await self.store.write(lambda tx: gates.answer(tx, row["id"], choice=choice, **wanted))
        assert self.dispatcher is not None
        self.dispatcher.ring()

    async def answer_all(self, choice: str) -> None:
        """Every open gate at once, as people in several windows do."""
        assert self.dispatcher is not None
        for row in self.gates():
            wanted: dict[str, Any] = {"etag": row["etag"], "key": f"k-{row['id']}", "actor": ME}
            await self.store.write(lambda tx, i=row["id"], w=wanted: gates.answer(tx, i, choice=choice, **w))  # type: ignore[misc]
        self.dispatcher.ring()

    def states(self) -> list[str]:
        return [str(row.state) for row in self.rows(sa.select(tables.runs.c.state).order_by(tables.runs.c.id))]

    def all_visits(self) -> list[str]:
        return [str(row.id) for row in self.rows(sa.select(tables.visits.c.id))]

    def gates(self) -> Sequence[sa.RowMapping]:
        query = sa.select(tables.gates).where(tables.gates.c.state == "open")
        return self.store.read_now(lambda conn: conn.execute(query).mappings().all())

    def run_state(self) -> str:
        return str(self._scalar(sa.select(tables.runs.c.state)))

    def visits(self) -> dict[str, str]:
        """Visit → its outcome when it is done, else its state."""
        v = tables.visits
        query = sa.select(v).order_by(v.c.created)
        rows = self.store.read_now(lambda conn: conn.execute(query).mappings().all())
        done = {row["id"]: row["outcome"] for row in rows if row["state"] == "done"}
        return {row["id"].partition("/")[2]: str(done.get(row["id"], row["state"])) for row in rows}

    def last(self, kind: type[D]) -> D:
        def read(conn: sa.Connection) -> bytes:
            found = blobs.newest(conn, "r1", kind.kind)
            assert found is not None, f"no {kind.kind}"
            return blobs.get_blob(conn, found.ref.sha256)

        return kind.parse(self.store.read_now(read))

    def attempts(self) -> tuple[Attempt, ...]:
        return self.store.read_now(lambda conn: attempts.listed(conn, "r1"))

    def decisions(self) -> Sequence[sa.RowMapping]:
        return self.store.read_now(lambda conn: conn.execute(sa.select(tables.decisions)).mappings().all())

    def steps(self) -> list[str]:
        """Names of everything recorded, without the visit, in order."""
        query = sa.select(tables.steps.c.name).order_by(tables.steps.c.seq)
        return [str(row.name) for row in self.rows(query)]

    def rows(self, query: sa.Select[Any]) -> list[sa.Row[Any]]:
        return self.store.read_now(lambda conn: list(conn.execute(query)))

    def _scalar(self, query: sa.Select[Any]) -> Any:
        return self.store.read_now(lambda conn: conn.execute(query).scalar())


def _always(text: str) -> Say:
    return lambda _task: text


def chain(*kinds: str, ends: Mapping[str, str] = {}, rework: Sequence[tuple[str, str, str]] = ()) -> str:
    """seed → kinds in a row by their good outcome; ``ends`` are further outcomes that lead nowhere on purpose."""
    good = {"setup": "ready", "cleanup": "done", "pull_request": "merged"}
    row = ["seed", *kinds]
    last = row[-1]
    final = [good.get(last, "ok"), *(o for k, o in ends.items() if k == last)]
    nodes = "".join(
        f"  - {{id: {k}, kind: {k}, ends: [{', '.join(final if k == last else [o for n, o in ends.items() if n == k])}]}}\n"
        for k in row
    )
    edges = "".join(f"  - {{from: {a}, outcome: {good.get(a, 'ok')}, to: {b}}}\n" for a, b in pairwise(row))
    back = "".join(f"  - {{from: {a}, outcome: {o}, to: {b}, kind: rework, max_visits: 3}}\n" for a, o, b in rework)
    return f"title: T\nstart: seed\nnodes:\n{nodes}edges:\n{edges}{back}"


# --- documents ----------------------------------------------------------------------------------------------------
TEST = CommandSpec(program="python3", args=("-m", "unittest", "tests.test_greet"))
SUITE = CommandSpec(program="python3", args=("-m", "unittest", "discover", "-s", "tests", "-t", "."))
CODE = "def greet(name):\n    return f'hello {name}'\n"
TESTS = (
    "import unittest\nimport greet\n\n\nclass Greet(unittest.TestCase):\n"
    "    def test_greets(self):\n        self.assertEqual(greet.greet('x'), 'hello x')\n"
)


def bead(name: str = "greet", **more: Any) -> Bead:
    fields: dict[str, Any] = {
        "id": name, "title": f"Add {name}", "acceptance_criteria": ("it greets",), "tests": ("greets",),
        "prd_refs": ("US-1-1",), "test_commands": (TEST,), "target_files": ("greet.py",),
        "test_files": ("tests/test_greet.py",),
    }  # fmt: skip
    return Bead(**fields | more)


def prd() -> Prd:
    story = Story(id="US-1-1", title="Greet people", acceptance_criteria=("hello",))
    return Prd(
        product=Product(problem_statement="People want to be greeted."),
        epics=(Epic(id="EPIC-1", title="Greetings", user_stories=(story,)),),
    )


def setup_plan(**more: Any) -> SetupPlan:
    fields: dict[str, Any] = {
        "readiness": Readiness(status="ready", actions_required=False),
        "project_commands": ProjectCommands(test_full=(SUITE,)),
    }
    return SetupPlan(**fields | more)


def baseline(spec: CommandSpec = SUITE, *, exit_code: int = 0) -> CommandRun:
    return CommandRun(command=str(spec), exit=exit_code, seconds=0.1, purpose="baseline")


def planned(*beads: Bead, **profile: Any) -> tuple[Document, ...]:
    """Everything that planning and setup leave behind."""
    ready = SetupProfile(**{"status": "ready", "baseline": (baseline(),), **profile})
    return (RelevantFiles(ticket_id=KEY), prd(), Beads(beads=beads or (bead(),)), setup_plan(), ready)


# --- what agents say ------------------------------------------------------------------------------------------------
def subject_of(task: AgentTask) -> tuple[str, int]:
    """Bead id and number of the try, from the brief's first line."""
    found = re.search(r"subject: (\S+) try (\d+)", task.brief.text)
    assert found, task.brief.text[:120]
    return found[1], int(found[2])


def marker(task: AgentTask, *, status: str = "done", checks: str = "pass", **more: Json) -> str:
    names = ("tests", "lint", "typecheck", "qualitative")
    reply = {"bead_id": subject_of(task)[0], "status": status, "checks": dict.fromkeys(names, checks), **more}
    return f"<BEAD_STATUS>\n{json.dumps(reply)}\n</BEAD_STATUS>"


def writes(files: Mapping[str, str], *, says: str = "", **more: Json) -> Say:
    """A coder that writes these files and says it is done, or what it is told to say."""

    def say(task: AgentTask) -> str:
        put(task.cwd, files)
        return says or marker(task, **more)

    return say


def put(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def publish(repository: Path) -> None:
    """Commits everything in the user's checkout and pushes it: what a person does before a run."""
    for args in (["add", "."], ["commit", "-qm", "more"], ["push", "-q", "origin", "main"]):
        subprocess.run(["git", "-C", str(repository), *args], check=True)


def lapses(task: AgentTask) -> Ended:
    return Lapsed(session=SessionRef(f"lapsed-{id(task)}", "talk"), worked=timedelta(seconds=1))


GOOD = {"greet.py": CODE, "tests/__init__.py": "", "tests/test_greet.py": TESTS}
