"""One story of planning with everything in it, undisturbed and crashed at every durable name: the same end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from beadmill import crashpoints
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.council import Coverage
from beadmill.artifacts.interview import Interview
from beadmill.artifacts.prd import Prd
from beadmill.crashpoints import Crashed
from beadmill.operations._forms import form
from beadmill.processes.spec import AgentTask
from beadmill.store import tables
from beadmill.store.db import Store
from tests.nodes.planning_world import DECISIONS, SESSIONS, Planning, repository

a, b, g = tables.artifacts.c, tables.blobs.c, tables.gates.c
# What two runs do not have in common: times, hashes over times, and the orders that voters drew.
CHANCE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+|\b([0-9a-f]{64}|[0-9a-f]{40})\b")
DRAWN = "council_votes"


async def test_a_ticket_is_planned_from_scan_to_beads_on_the_real_journal(tmp_path: Path, repo: Path) -> None:
    planning = Planning.at(tmp_path / "home")
    async with planning.daemon():
        await planning.begin(repo)
        await planning.person()
    assert planning.run_state() == "completed"
    said = [(q.id, q.answer.skipped, q.answer.selected_option_ids) for q in planning.made(Interview).questions]
    assert said == [("Q01", False, ("customers",)), *((q, q == "FU1", ()) for q in ("Q02", "FU1", "QFF1", "CFU1"))]
    assert planning.made(Prd).epics[0].user_stories[0].title == "Save a list, also an empty one"
    assert [bead.id for bead in planning.made(Beads).beads] == ["write-rows", "command"]
    assert planning.made(Coverage).ended == "clean"
    assert otherwise_previewed(planning) == set()


def otherwise_previewed(planning: Planning) -> set[str]:
    """Templates whose sessions were asked for another form than the preview of the prompt shows. Ballots name labels."""
    briefs = [s.work.brief for s in planning.sessions.by_token.values() if isinstance(s.work, AgentTask)]
    shown = {b.template: shape.format_help().strip() for b in briefs if (shape := form(b.template)) is not None}
    return {b.template for b in briefs if not b.template.endswith("_vote") and shown[b.template] not in b.text}


class Crashes:
    """Every crash point behind an act ends the daemon the first time it is reached; of seats that do the same, one."""

    def __init__(self) -> None:
        self.at: list[str] = []

    def __call__(self, name: str) -> None:
        call = re.sub(r"seat-\d+", "seat-#", name)
        if not name.startswith("before ") and not name.endswith(":opened") and call not in self.at:
            self.at.append(call)
            raise Crashed(name)


@pytest.fixture
def crashes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Crashes]:
    monkeypatch.setenv("BEADMILL_TESTING", "1")
    plan = Crashes()
    monkeypatch.setattr(crashpoints, "on_reach", None)
    yield plan
    crashpoints.on_reach = None


@pytest.mark.timeout(300)
async def test_planning_that_crashes_at_every_durable_name_ends_as_if_nothing_had_happened(
    tmp_path: Path, crashes: Crashes
) -> None:
    calm, planning = (Planning.at(tmp_path / name) for name in ("calm", "home"))
    for each in (calm, planning):
        await each.begin(repository(each.home))
    assert await calm.life(Crashed)
    crashpoints.on_reach = crashes
    while not await planning.life(Crashed):
        pass
    assert len(crashes.at) > 100
    assert len(planning.sessions.by_token) == SESSIONS
    for end in (calm, planning):
        end.store = Store(f"sqlite:///{end.home / 'beadmill.db'}")
    assert kept(planning) == kept(calm)
    assert asked(planning) == dict.fromkeys(("Q01", "Q02", "FU1", "QFF1", "CFU1"), 1)
    decided = planning.rows(sa.select(tables.decisions.c.gate_id))
    assert sorted(str(row[0]) for row in decided) == sorted(f"r1/{gate}#0" for gate in DECISIONS)


def kept(planning: Planning) -> Counter[tuple[str, ...]]:
    """Every document, visit by visit, without what is left to chance."""
    found: Counter[tuple[str, ...]] = Counter()
    query = sa.select(a.kind, a.visit_id, a.author, b.data).join(tables.blobs, b.sha256 == a.sha256)
    for row in planning.rows(query):
        text = "" if row.kind == DRAWN else row.data.decode().replace(str(planning.home), "home")
        found[row.kind, row.visit_id, row.author, CHANCE.sub("then", text)] += 1
    return found


def asked(planning: Planning) -> Counter[str]:
    """How many gates put each question."""
    forms = planning.rows(sa.select(g.form).where(g.kind == "interview"))
    return Counter(question for row in forms for question in row.form["properties"]["answers"]["properties"])
