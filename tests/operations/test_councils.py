"""What a council's seats are doing, and what seats achieved over all councils of a project."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from house_for_tests import OWNER
from pages_for_tests import page, text

from beadmill.council.record import DEFINITIONS
from beadmill.domain.ended import Asked, Ended, SessionRef
from beadmill.errors import NotFound
from beadmill.operations import councils
from beadmill.processes.spec import AgentTask
from beadmill.store import tables
from tests.house.source import ROOT
from tests.nodes.fakes import failed, header, lapsed
from tests.nodes.planning_replies import QUESTIONS, prd, votes
from tests.nodes.planning_world import Planning, repository

pytestmark = pytest.mark.timeout(300)  # a whole planning lies behind each


def of_seat(name: str) -> Any:
    return lambda task: name.replace("plain", f"seat {header(task)['seat']}")


async def _planned(root: Path) -> Path:
    story = "{type: modified, item_type: user_story, id: US-1-1, before: a, after: b, inspiration: {draft: 2, item: US-1-1}}"
    taken = prd(title="Save a list as a CSV file") + f"changes:\n  - {story}\n"
    said = {"prd_draft": of_seat(prd()), "prd_vote": votes("prd", best="(seat 2)"), "prd_refine": taken}
    planning = Planning.at(root / "home", said)
    async with planning.daemon():
        await planning.begin(repository(root))
        await planning.person()
    planning.store.close()
    return root / "home"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a ticket whose PRD was won by the second seat, with an idea of the first. Planned once."""
    return asyncio.run(_planned(tmp_path_factory.mktemp("planned")))


@pytest.fixture
def planned(home: Path, tmp_path: Path) -> Iterator[Planning]:
    copy = tmp_path / "planned"
    copy.mkdir(mode=0o700)
    shutil.copy(home / "beadmill.db", copy)
    planning = Planning.at(copy)
    yield planning
    planning.store.close()


async def merge(planning: Planning) -> None:
    """As if the run had built and merged its first bead."""
    change = {"forge": "local", "number": 1, "branch": "b", "base": "main", "head": "c", "state": "merged"}
    landed = {"bead": "write-rows", "n": 1, "bead_sha": "s", "visit_id": "r1/beads.1", "key": "k", "state": "done"}

    def act(tx: Any) -> None:
        tx.run(sa.insert(tables.changes).values(run_id="r1", **change))
        tx.run(sa.insert(tables.bead_attempts).values(run_id="r1", started=tx.now, **landed))

    await planning.store.write(act)


async def test_the_record_says_whose_drafts_won_whose_ideas_were_taken_and_what_was_merged(planned: Planning) -> None:
    await merge(planned)
    async with planned.looked_at() as (ports, _):
        found = await councils.record(ports, "T", actor=OWNER)
    lines = {s.label: (s.wins, s.adopted, s.brought, s.approved, s.merged) for s in found.seats}
    assert lines == {
        "scripted/a": ({"interview": 1, "beads": 1}, 1, 3, 3, 2),  # US-1-1 by inspiration, and both beads of its plan
        "scripted/b": ({"prd": 1}, 0, 2, 2, 2),  # EPIC-1 and US-1-1
        "scripted/c": ({}, 0, 0, 0, 0),
    }
    assert [(s.councils, s.drafts, s.votes, s.mean) for s in found.seats][1] == (3, {"completed": 3}, 6, 175 / 3)


async def test_what_was_not_merged_is_approved_and_no_more(planned: Planning) -> None:
    async with planned.looked_at() as (ports, _):
        found = await councils.record(ports, "T", actor=OWNER)
    assert [(s.approved, s.merged) for s in found.seats] == [(3, 0), (2, 0), (0, 0)]


async def test_every_council_of_the_record_leads_to_its_ticket(planned: Planning) -> None:
    async with planned.looked_at() as (ports, _):
        found = await councils.record(ports, "T", actor=OWNER)
    assert [(c.ticket, c.visit, c.winner) for c in found.councils] == [
        ("T-1", "r1/beads.1", "scripted/a"),
        ("T-1", "r1/prd.1", "scripted/b"),
        ("T-1", "r1/interview.1", "scripted/a"),
    ]


def test_every_version_of_the_loop_names_the_one_it_came_from(planned: Planning) -> None:
    a = tables.artifacts.c
    rows = planned.rows(sa.select(a.id, a.version, a.parent).where(a.kind == "prd").order_by(a.id))
    assert [row.version for row in rows] == [1, 2, 3]
    assert [row.parent for row in rows] == [None, rows[0].id, rows[1].id]


async def test_a_seat_is_charged_for_all_its_sessions_in_the_councils(planned: Planning) -> None:
    s = tables.sessions
    await planned.store.write(lambda tx: tx.run(sa.update(s).values(input=10, cost_usd=0.5, cost_source="priced")))
    spent = planned.rows(
        sa.select(s.c.seat, sa.func.count().label("n")).where(s.c.visit_id != "r1/scan.1").group_by(s.c.seat)
    )
    async with planned.looked_at() as (ports, _):
        found = await councils.record(ports, "T", actor=OWNER)
    wanted = {row.seat: (10 * row.n, 0.5 * row.n) for row in spent}
    assert {x.label: (x.spend.tokens, x.spend.cost_usd) for x in found.seats} == wanted


async def test_an_unknown_project_and_a_node_without_a_council_are_not_found(planned: Planning) -> None:
    async with planned.looked_at() as (ports, _):
        with pytest.raises(NotFound):
            await councils.record(ports, "NONE", actor=OWNER)
        with pytest.raises(NotFound) as caught:
            await councils.show(ports, "r1", "scan", actor=OWNER)
    assert caught.value.code == "NO_COUNCIL"


# --- pages --------------------------------------------------------------------------------------------------------
async def test_the_page_of_the_record_defines_each_number_and_links_each_ticket(planned: Planning) -> None:
    async with planned.looked_at() as (_, client):
        shown = await page(client, "/projects/T/council")
        assert await page(client, "/projects/T")
    assert 'title="Changes in documents of other winners that name its draft as their inspiration."' in shown
    assert 'href="/tickets/T-1/nodes/prd?visit=1"' in shown


async def test_the_page_of_a_council_says_who_inspired_what_and_how_labels_map_to_seats(planned: Planning) -> None:
    async with planned.looked_at() as (ports, client):
        shown = text(await page(client, "/tickets/T-1/nodes/prd"))
        found = await councils.show(ports, "r1", "prd", actor=OWNER)
    assert "inspired by draft of seat 1 (scripted/a) : US-1-1" in shown.replace("(scripted/a):", "(scripted/a) :")
    first, second = found.votes["ballots"][0]["order"]
    assert f"Draft 1 = seat {first + 1}, Draft 2 = seat {second + 1}" in shown.replace(" ,", ",")
    assert "It ended because nothing is missing." in shown


def test_the_documentation_defines_each_number_in_the_same_words() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", (ROOT / "docs/councils.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows) == dict(DEFINITIONS)


# --- a council at work --------------------------------------------------------------------------------------------
def held(task: AgentTask) -> str | Ended:
    """The first seat has drafted, the second asks, the third still works."""
    if header(task)["seat"] == "2":
        return Asked(session=SessionRef(""), question="Which separator?")
    return prd()


async def test_a_council_at_work_shows_who_is_done_who_asks_and_who_still_works(tmp_path: Path, repo: Path) -> None:
    planning = Planning.at(tmp_path / "home", {"prd_draft": held})
    real = planning.sessions.attach

    async def third_works(token: str, work: Any, box: Any) -> Any:
        session = await real(token, work, box)
        session.end = None if "prd.1/draft/seat-3/draft" in token else session.end
        return session

    planning.sessions.attach = third_works  # type: ignore[method-assign]
    async with planning.daemon():
        await planning.begin(repo)
        await planning.person(until="prd.1/draft/seat-2")
        await planning.until(lambda: planning.events("council.").count("council.drafted") == 4)
        third = sa.select(sa.func.count()).where(tables.sessions.c.token.contains("prd.1/draft/seat-3/draft"))
        await planning.until(lambda: planning.scalar(third) == 1)
        async with planning.looked_at() as (ports, client):
            found = await councils.show(ports, "r1", "prd", actor=OWNER)
            shown = text(await page(client, "/tickets/T-1/nodes/prd"))
    drafts, votes_ = found.phases
    assert [turn.state for turn in drafts.seats] == ["completed", "asks", "working"]
    assert ([turn.state for turn in votes_.seats], found.drafts) == (["pending"] * 3, None)
    assert ("waits for your answer" in shown, "working since" in shown) == (True, True)


# --- seats that fail ----------------------------------------------------------------------------------------------
FIVE = tuple(f"scripted/{name}" for name in "abcde")
FAILING = {"3": lapsed(), "4": "I would rather not use the form.", "5": failed()}


def or_fails(good: Any) -> Any:
    """Of five seats one times out, one writes garbage and one refuses."""
    said = good if callable(good) else lambda _task: good
    return lambda task: FAILING.get(header(task)["seat"]) or said(task)


async def test_seats_that_time_out_write_garbage_or_refuse_leave_an_explained_result(
    tmp_path: Path, repo: Path
) -> None:
    said = {"interview_draft": or_fails(QUESTIONS), "interview_vote": or_fails(votes("interview"))}
    planning = Planning.at(tmp_path / "home", said)
    async with planning.daemon():
        await planning.begin(repo, seats=FIVE)
        await planning.gate_open("batch-1")
        async with planning.looked_at() as (ports, client):
            found = await councils.show(ports, "r1", "interview", actor=OWNER)
            shown = text(await page(client, "/tickets/T-1/nodes/interview"))
    ends = ["completed", "completed", "timed_out", "invalid_output", "failed"]
    assert [[turn.state for turn in phase.seats] for phase in found.phases[:2]] == [ends, ends]
    assert [one["outcome"] for one in found.drafts["drafts"]] == ends
    assert found.votes["winner"] in (0, 1)
    assert [turn.error for turn in found.phases[0].seats][::2] == ["", "The agent used up its working time", "auth"]
    for words in ("ran out of time", "gave nothing that can be read", "no usable questions after 2 replies"):
        assert words in shown, words


async def test_too_few_usable_drafts_block_with_a_reason_per_seat_and_a_retry_asks_only_those(
    tmp_path: Path, repo: Path
) -> None:
    well: list[bool] = []
    good = or_fails(QUESTIONS)
    planning = Planning.at(tmp_path / "home", {"interview_draft": lambda task: QUESTIONS if well else good(task)})
    async with planning.daemon():
        await planning.begin(repo, seats=FIVE, quorum=3)
        blocked = await planning.gate_open("blocked")
        async with planning.looked_at() as (_, client):
            shown = text(await page(client, "/tickets/T-1"))
        well.append(True)
        await planning.answer("blocked", "retry")
        await planning.gate_open("batch-1")
    assert [(s["seat"], s["outcome"]) for s in blocked["detail"]["details"]["seats"]] == [
        (2, "timed_out"),
        (3, "invalid_output"),
        (4, "failed"),
    ]
    assert "2 of 5 seats gave a usable draft, 3 are needed." in shown
    again = [token for token in planning.sessions.started if "draft/seat" in token and "#1/" in token]
    assert again == [f"interview.1/draft/seat-{n}/draft/ask#1/1" for n in (3, 4, 5)]
