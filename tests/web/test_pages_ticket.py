from __future__ import annotations

from typing import Any

import httpx2
import pytest
from house_for_tests import OWNER, Starter
from pages_for_tests import HTML, fields, page, text

from beadmill.operations import projects, tickets
from beadmill.operations.ports import Ports

DRAFT: dict[str, Any] = {"title": "One", "description": "", "acceptance": "", "priority": "3", "sop": "write"}


@pytest.mark.usefixtures("project")
async def test_a_new_ticket_is_written_with_its_own_settings(signed_in: httpx2.AsyncClient, ports: Ports) -> None:
    hidden = fields(await page(signed_in, "/tickets/new"), "/tickets")
    own = {"set.council.seats": "scripted/a\nscripted/b\n", "set.build.attempts": "2", "set.gates.prd": "off"}
    answer = await signed_in.post("/tickets", data={**hidden, **DRAFT, "project": "API", **own})
    assert (answer.status_code, answer.headers["location"]) == (303, "/tickets/API-1")
    made = await tickets.show(ports, "API-1", actor=OWNER)
    seats = ["scripted/a", "scripted/b"]
    assert made.overrides == {"council": {"seats": seats}, "build": {"attempts": 2}, "gates": {"prd": "off"}}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("title", "  ", "a title has 1 to 200 characters"),
        ("set.build.attempts", "many", "build.attempts: 'many' is no number"),
        ("set.build.attempts", "99", "these settings are not valid"),
    ],
)
async def test_a_bad_field_is_named_and_everything_typed_is_kept(
    signed_in: httpx2.AsyncClient, field: str, value: str, said: str
) -> None:
    data = {**DRAFT, "project": "API", "description": "a long text\nof two lines", field: value}
    answer = await signed_in.post("/tickets", data=data)
    assert (answer.status_code in (400, 422), said in text(answer.text)) == (True, True)
    assert ">a long text\nof two lines</textarea>" in answer.text


@pytest.mark.usefixtures("project")
async def test_a_double_click_on_save_writes_one_ticket(signed_in: httpx2.AsyncClient) -> None:
    hidden = fields(await page(signed_in, "/tickets/new"), "/tickets")
    clicks = [await signed_in.post("/tickets", data={**hidden, **DRAFT, "project": "API"}) for _ in range(2)]
    assert [one.headers["location"] for one in clicks] == ["/tickets/API-1"] * 2


@pytest.mark.usefixtures("project")
async def test_a_draft_shows_what_it_inherits_and_from_where(signed_in: httpx2.AsyncClient, ports: Ports) -> None:
    saved = await signed_in.post("/projects/API", data={"name": "api", "set.build.attempts": "3"})
    assert saved.status_code == 303
    await tickets.create(ports, "API", title="One", actor=OWNER)
    shown = await page(signed_in, "/tickets/API-1")
    assert ('placeholder="3 (project)"' in shown, 'placeholder="50 (default)"' in shown) == (True, True)


@pytest.mark.usefixtures("project")
async def test_a_start_that_lacks_seats_says_what_to_set(signed_in: httpx2.AsyncClient, ports: Ports) -> None:
    await tickets.create(ports, "API", title="One", actor=OWNER)
    answer = await signed_in.post("/tickets/API-1/edit", data={**DRAFT, "sop": "deliver", "start": "1"})
    assert (answer.status_code, "the council has 0 of at least 2 seats" in answer.text) == (400, True)


async def test_a_run_is_paused_resumed_and_canceled(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    await started()
    for act, hold in (("pause", "paused"), ("resume", "none")):
        hidden = fields(await page(signed_in, "/tickets/API-1"), f"/tickets/API-1/{act}")
        await signed_in.post(f"/tickets/API-1/{act}", data=hidden)
        assert (await tickets.show(ports, "API-1", actor=OWNER)).hold == hold
    await signed_in.post("/tickets/API-1/cancel", data={"reason": "not needed"})
    assert (await tickets.show(ports, "API-1", actor=OWNER)).state == "canceled"


@pytest.mark.parametrize(
    "path",
    [
        "/tickets/API-1",
        "/tickets/API-1/beads",
        "/tickets/API-1/change",
        "/tickets/API-1/sessions",
        "/tickets/API-1/history",
        "/tickets/API-1/nodes/write",
        "/tickets/API-1/nodes/check",
        "/runs",
        "/runs/API-1-r1",
        "/artifacts/1",
        "/sops",
        "/sops/deliver",
        "/agents",
        "/projects",
        "/projects/API",
        "/settings",
        "/welcome",
    ],
)
async def test_every_page_is_there_with_one_heading_and_its_own_policy(
    signed_in: httpx2.AsyncClient, started: Starter, path: str
) -> None:
    await started()
    answer = await signed_in.get(path, headers=HTML)
    assert (answer.status_code, answer.text.count("<h1")) == (200, 1)
    assert "unsafe" not in answer.headers["content-security-policy"]


async def test_what_is_not_there_is_said_in_words(signed_in: httpx2.AsyncClient) -> None:
    said = text(await page(signed_in, "/tickets/NO-1", 404))
    assert "there is no ticket NO-1" in said
    assert "Next: beadmill ticket list" in said


async def test_a_live_part_that_fails_goes_to_the_place_for_problems(signed_in: httpx2.AsyncClient) -> None:
    answer = await signed_in.get("/tickets/NO-1", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["hx-retarget"]) == (404, "#problems")
    assert "<html" not in answer.text


async def test_signing_out_ends_the_session(signed_in: httpx2.AsyncClient) -> None:
    assert "Signed out" in (await signed_in.post("/leave")).text
    assert (await signed_in.get("/", headers=HTML)).status_code == 401


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("sandbox", ["host", pytest.param("bubblewrap", marks=pytest.mark.sandbox)])
async def test_a_ticket_says_which_sandbox_it_has_and_warns_when_there_is_none(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter, sandbox: str
) -> None:
    await projects.change(ports, "API", overrides={"sandbox": sandbox}, actor=OWNER)
    await started()
    shown = text(await page(signed_in, "/tickets/API-1"))
    assert (f"Sandbox {sandbox}" in shown, "No sandbox: agents and commands" in shown) == (True, sandbox == "host")


async def test_the_history_keeps_every_stop_with_how_it_went_on(
    signed_in: httpx2.AsyncClient, cli: httpx2.AsyncClient, started: Starter
) -> None:
    await started(title="Block")
    assert "What stopped it it does not work yet write" in text(await page(signed_in, "/tickets/API-1/history"))
    assert (await cli.post("/api/v1/runs/API-1-r1/retry", json={"note": "look again"})).status_code == 200
    first = (await cli.get("/api/v1/runs/API-1-r1/errors")).json()[0]
    assert (first["number"], first["resolution"], first["note"], first["resumed_to"]) == (
        1,
        "retry",
        "look again",
        "write",
    )
    said = text(await page(signed_in, "/tickets/API-1/history"))
    assert "Retry → write · owner" in said
    assert (await cli.post("/api/v1/runs/API-1-r1/retry", json={"note": "  "})).status_code == 422
