"""The cascade profile → project → ticket, and what of it a run reads again."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from house_for_tests import Starter

from beadmill.domain.values import Actor
from beadmill.errors import Conflict, Refused, Unprocessable
from beadmill.operations import projects, settings, tickets, views
from beadmill.operations._cascade import live_settings
from beadmill.operations.ports import Ports
from beadmill.store import tables as t

pytestmark = pytest.mark.usefixtures("project")


def one(view: views.SettingsView, path: str) -> views.SettingView:
    (found,) = [setting for setting in view.settings if setting.path == path]
    return found


async def test_every_layer_is_shown_and_the_topmost_counts(ports: Ports, owner: Actor) -> None:
    await settings.change(ports, {"build.attempts": 2, "build.idle_s": 60}, actor=owner)
    await settings.change(ports, {"build.attempts": 3}, project="API", actor=owner)
    draft = await tickets.create(ports, "API", title="One", overrides={"build": {"attempts": 4}}, actor=owner)

    shown = await settings.show(ports, ticket=draft.key, actor=owner)

    attempts, idle = one(shown, "build.attempts"), one(shown, "build.idle_s")
    assert attempts.layers == {"default": 5, "file": 2, "project": 3, "ticket": 4}
    assert (attempts.value, attempts.source, attempts.range, attempts.when) == (4, "ticket", "1–20", "try")
    assert (idle.value, idle.source) == (60, "file")
    assert (shown.scope, shown.name, shown.frozen) == ("ticket", draft.key, False)


async def test_a_layer_is_shown_as_a_run_reads_it(ports: Ports, owner: Actor) -> None:
    shown = await settings.change(ports, {"council.seats": ["codex/gpt-5/high"]}, project="API", actor=owner)
    assert one(shown, "council.seats").value == [{"agent": "codex", "model": "gpt-5", "effort": "high"}]


async def test_nothing_inherits_again_and_the_word_none_is_a_value(ports: Ports, owner: Actor) -> None:
    await settings.change(ports, {"budget.usd": 20}, actor=owner)
    none = await settings.change(ports, {"budget.usd": "none"}, project="API", actor=owner)
    again = await settings.change(ports, {"budget.usd": None}, project="API", actor=owner)

    found = [(one(view, "budget.usd").value, one(view, "budget.usd").source) for view in (none, again)]
    assert found == [(None, "project"), (20, "file")]


async def test_other_settings_of_the_layer_stay(ports: Ports, owner: Actor) -> None:
    await projects.change(ports, "API", overrides={"build": {"idle_s": 60}}, actor=owner)
    await settings.change(ports, {"build.attempts": 3}, project="API", actor=owner)
    assert (await projects.show(ports, "API", actor=owner)).overrides == {"build": {"idle_s": 60, "attempts": 3}}


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"build.attemps": 3}, {"build.attemps": "no such setting; did you mean build.attempts?"}),
        ({"build.attempts": 99}, {"build.attempts": "Input should be less than or equal to 20"}),
    ],
)
@pytest.mark.parametrize("whose", [{}, {"project": "API"}])
async def test_a_wrong_setting_is_named_and_nothing_changes(
    ports: Ports, owner: Actor, changes: dict[str, Any], fields: dict[str, str], whose: dict[str, str]
) -> None:
    with pytest.raises(Unprocessable) as refused:
        await settings.change(ports, changes, **whose, actor=owner)

    assert refused.value.details["fields"] == fields
    assert one(await settings.show(ports, **whose, actor=owner), "build.attempts").source == "default"


async def test_the_installation_is_changed_by_an_administrator(ports: Ports) -> None:
    with pytest.raises(Refused):
        await settings.change(ports, {"build.attempts": 3}, actor=Actor("user", "ada", "api", ("plan",)))


async def test_a_running_ticket_shows_what_is_frozen_and_what_comes_with_the_next_try(
    ports: Ports, owner: Actor, started: Starter
) -> None:
    ticket = await started()
    await settings.change(ports, {"build.attempts": 3, "council.quorum": 4, "agent_slots": 9}, actor=owner)

    shown = await settings.show(ports, ticket=ticket.key, actor=owner)

    attempts, slots = one(shown, "build.attempts"), one(shown, "agent_slots")
    assert (attempts.value, attempts.source, attempts.layers["run"]) == (3, "file", 5)
    assert (attempts.pending, one(shown, "council.quorum").pending) == ("from the next try", "from the next stage")
    assert (slots.value, slots.source, slots.layers) == (4, "run", {"default": 4, "file": 9, "run": 4})
    assert shown.frozen


async def test_a_running_ticket_takes_only_what_it_reads_again(ports: Ports, owner: Actor, started: Starter) -> None:
    ticket = await started()
    taken = await settings.change(ports, {"build.attempts": 3}, ticket=ticket.key, actor=owner)
    with pytest.raises(Conflict) as refused:
        await settings.change(ports, {"build.attempts": 4, "council.mode": "solo"}, ticket=ticket.key, actor=owner)

    assert (one(taken, "build.attempts").source, refused.value.details["frozen"]) == ("ticket", ["council.mode"])
    assert (await tickets.show(ports, ticket.key, actor=owner)).overrides == {"build": {"attempts": 3}}


async def test_the_engine_reads_what_the_layers_say_now(ports: Ports, owner: Actor, started: Starter) -> None:
    await settings.change(ports, {"build.attempts": 3}, project="API", actor=owner)
    ticket = await started()
    await settings.change(ports, {"build.attempts": 4, "build.idle_s": 60}, ticket=ticket.key, actor=owner)
    v, live = t.visits.c, live_settings(ports.profile)
    begun = ports.store.read_now(lambda conn: conn.execute(sa.select(v.settings).where(v.n == 1)).scalar_one())
    now = ports.store.read_now(lambda conn: live(conn, ticket.run))

    assert (begun["build"]["attempts"], set(begun)) == (3, {"council", "build"})
    assert now is not None
    assert (now["build"]["attempts"], now["build"]["idle_s"]) == (4, 60)


async def test_layers_that_have_become_invalid_leave_a_run_as_it_is(
    ports: Ports, owner: Actor, started: Starter
) -> None:
    ticket = await started()
    ports.store.write_now(lambda tx: tx.run(sa.update(t.projects).values(overrides={"build": {"attempts": 99}})))
    live = live_settings(ports.profile)
    assert ports.store.read_now(lambda conn: live(conn, ticket.run)) is None
