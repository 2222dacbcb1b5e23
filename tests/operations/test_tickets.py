from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from house_for_tests import Starter, until

from beadmill.domain.sop import NodeDef
from beadmill.domain.values import Actor
from beadmill.errors import Conflict, Invalid, NotFound, Refused, Unprocessable
from beadmill.operations import gates, projects, runs, tickets, views
from beadmill.operations._seats import check_seats
from beadmill.operations.ports import Ports
from tests.conftest import Git

pytestmark = pytest.mark.usefixtures("project")


async def test_a_new_ticket_is_a_draft_with_the_next_key(ports: Ports, owner: Actor) -> None:
    first = await tickets.create(ports, "API", title=" One ", actor=owner)
    second = await tickets.create(ports, "API", title="Two", actor=owner)
    assert (first.key, first.title, first.status, first.column) == ("API-1", "One", "draft", "todo")
    assert second.key == "API-2"


async def test_c74_tickets_created_at_the_same_time_are_numbered_by_one_counter(ports: Ports, owner: Actor) -> None:
    made = await asyncio.gather(*(tickets.create(ports, "API", title=f"{n}", actor=owner) for n in range(5)))
    assert sorted(one.key for one in made) == [f"API-{n}" for n in range(1, 6)]


async def test_c21_another_checkout_of_an_attached_repository_is_the_same_project(
    ports: Ports, owner: Actor, repo: Path, git: Git
) -> None:
    git(repo, "worktree", "add", "-qb", "beside", "../beside")
    with pytest.raises(Conflict, match="attached already, as API") as refused:
        await projects.add(ports, str(repo.parent / "beside"), actor=owner)
    assert refused.value.code == "ATTACHED"


async def test_the_same_key_creates_one_ticket(ports: Ports, owner: Actor) -> None:
    first = await tickets.create(ports, "API", title="One", actor=owner, key="click")
    again = await tickets.create(ports, "API", title="One", actor=owner, key="click")
    assert again.key == first.key
    assert [line.key for line in (await tickets.listing(ports, actor=owner)).items] == ["API-1"]


async def test_a_key_used_for_another_ticket_is_refused(ports: Ports, owner: Actor) -> None:
    await tickets.create(ports, "API", title="One", actor=owner, key="click")
    with pytest.raises(Conflict) as refused:
        await tickets.create(ports, "API", title="Two", actor=owner, key="click")
    assert refused.value.code == "KEY_REUSED"


async def test_a_draft_is_edited_and_an_active_ticket_is_not(ports: Ports, owner: Actor, started: Starter) -> None:
    draft = await tickets.create(ports, "API", title="One", actor=owner)
    edited = await tickets.edit(ports, draft.key, {"title": "New", "priority": 1}, actor=owner)
    assert (edited.title, edited.priority) == ("New", 1)
    active = await started()
    with pytest.raises(Conflict) as refused:
        await tickets.edit(ports, active.key, {"title": "Late"}, actor=owner)
    assert refused.value.code == "NOT_DRAFT"


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"title": " "}, "TITLE"), ({"priority": 6}, "PRIORITY"), ({"state": "completed"}, "FIELDS")],
)
async def test_a_bad_edit_says_what_is_wrong(ports: Ports, owner: Actor, changes: dict[str, object], code: str) -> None:
    draft = await tickets.create(ports, "API", title="One", actor=owner)
    with pytest.raises(Invalid) as refused:
        await tickets.edit(ports, draft.key, changes, actor=owner)
    assert refused.value.code == code


async def test_bad_overrides_name_the_field(ports: Ports, owner: Actor) -> None:
    with pytest.raises(Unprocessable) as refused:
        await tickets.create(ports, "API", title="One", overrides={"build": {"attempts": 99}}, actor=owner)
    assert list(refused.value.details["fields"]) == ["build.attempts"]


async def test_an_unknown_sop_is_not_found(ports: Ports, owner: Actor) -> None:
    with pytest.raises(NotFound):
        await tickets.create(ports, "API", title="One", sop="nothing", actor=owner)


async def test_a_council_needs_two_seats_of_known_agents_unless_it_is_solo(ports: Ports) -> None:
    found = []
    for council in ({"seats": ["scripted/a"]}, {"seats": ["scripted/a"], "mode": "solo"}, {"seats": ["a", "a"]}):
        settings = ports.settings.defaults.overlaid({"council": council})
        try:
            check_seats(ports, settings, [NodeDef("ask", "interview")], project="API")
            found.append("ok")
        except Invalid as refused:
            found.append(refused.code)
    assert found == ["SEATS", "ok", "AGENT_UNKNOWN"]


async def test_a_start_freezes_settings_from_every_layer(ports: Ports, owner: Actor) -> None:
    await projects.change(ports, "API", overrides={"build": {"attempts": 7, "idle_s": 60}}, actor=owner)
    over = {"build": {"attempts": 9}}
    draft = await tickets.create(ports, "API", title="One", sop="hello", overrides=over, actor=owner)
    active = await tickets.start(ports, draft.key, actor=owner)
    assert active.current is not None
    frozen = active.current.settings["build"]
    assert (frozen["attempts"], frozen["idle_s"], active.run, active.state) == (9, 60, "API-1-r1", "active")


async def test_a_ticket_goes_from_draft_to_completed(ports: Ports, owner: Actor, started: Starter) -> None:
    ticket = await started("hello")
    gate = ticket.current.gates[0]
    await gates.answer(ports, gate.id, "approved", etag=gate.etag, actor=owner)
    done = await until(ports, ticket.key, lambda t: t.state == "completed")
    assert [(node.id, node.state) for node in done.current.nodes] == [("greet", "done"), ("review", "done")]


async def test_a_canceled_ticket_is_said_canceled_only_when_its_run_is(
    ports: Ports, owner: Actor, started: Starter
) -> None:
    ticket = await started()
    canceled = await tickets.cancel(ports, ticket.key, reason="not needed", actor=owner)
    assert canceled.current is not None
    assert (canceled.state, canceled.current.state, canceled.waits) == ("canceled", "canceled", 0)
    assert {visit.state for visit in canceled.current.visits} == {"canceled"}


async def test_a_draft_is_canceled_without_a_run(ports: Ports, owner: Actor) -> None:
    draft = await tickets.create(ports, "API", title="One", actor=owner)
    assert (await tickets.cancel(ports, draft.key, actor=owner)).status == "canceled"


async def test_pages_follow_each_other_without_gap_or_repeat(ports: Ports, owner: Actor) -> None:
    for n in range(5):
        await tickets.create(ports, "API", title=f"T{n}", actor=owner)
    seen: list[str] = []
    cursor = ""
    while True:
        page = await tickets.listing(ports, actor=owner, limit=2, cursor=cursor, sort="created")
        seen += [line.key for line in page.items]
        if page.next is None:
            break
        cursor = page.next
    assert seen == ["API-5", "API-4", "API-3", "API-2", "API-1"]


async def test_a_ticket_that_waits_for_a_person_is_in_needs_input(ports: Ports, owner: Actor, started: Starter) -> None:
    await tickets.create(ports, "API", title="Draft", actor=owner)
    waiting = await started()
    found: dict[str, list[str]] = {}
    columns: tuple[views.Column, ...] = ("todo", "needs_input", "in_progress", "done")
    for column in columns:
        page = await tickets.listing(ports, actor=owner, column=column)
        found[column] = [line.key for line in page.items]
    assert found == {"todo": ["API-1"], "needs_input": [waiting.key], "in_progress": [], "done": []}


async def test_search_finds_words_of_the_title(ports: Ports, owner: Actor) -> None:
    await tickets.create(ports, "API", title="Parse dates", actor=owner)
    await tickets.create(ports, "API", title="Parse 100% of names", actor=owner)
    found = await tickets.listing(ports, actor=owner, search="parse 100%")
    assert [line.key for line in found.items] == ["API-2"]


async def test_a_reader_may_not_create(ports: Ports) -> None:
    reader = Actor("user", "bot", "api", scopes=("read",))
    with pytest.raises(Refused) as refused:
        await tickets.create(ports, "API", title="One", actor=reader)
    assert refused.value.details == {"needs": "plan", "has": ["read"]}


async def test_a_project_with_an_active_ticket_is_not_removed(ports: Ports, owner: Actor, started: Starter) -> None:
    ticket = await started()
    with pytest.raises(Conflict) as refused:
        await projects.remove(ports, "API", actor=owner)
    assert refused.value.details == {"tickets": [ticket.key]}
    await tickets.cancel(ports, ticket.key, actor=owner)
    await projects.remove(ports, "API", actor=owner)
    kept = await projects.show(ports, "API", actor=owner)
    assert (kept.repository, kept.tickets) == (None, 1)


async def test_pause_and_resume(ports: Ports, owner: Actor, started: Starter) -> None:
    ticket = await started()
    paused = await runs.pause(ports, ticket.run, actor=owner)
    resumed = await runs.resume(ports, ticket.run, actor=owner)
    assert (paused.hold, resumed.hold) == ("paused", "none")


async def test_a_rerun_of_an_ended_run_keeps_what_lies_before_and_happens_once(
    ports: Ports, owner: Actor, started: Starter
) -> None:
    ticket = await started("hello")
    gate = ticket.current.gates[0]
    await gates.answer(ports, gate.id, "approved", etag=gate.etag, actor=owner)
    await until(ports, ticket.key, lambda t: t.state == "completed")
    first = await runs.rerun(ports, ticket.run, "review", actor=owner, key="click")
    again = await runs.rerun(ports, ticket.run, "review", actor=owner, key="click")
    assert (first.id, again.id, first.parent) == ("API-1-r2", "API-1-r2", "API-1-r1")
    assert {v.node: v.state for v in first.visits}["greet"] == "kept"
    assert (await runs.show(ports, ticket.run, actor=owner)).state == "superseded"
