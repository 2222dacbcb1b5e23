from __future__ import annotations

from typing import Any

import httpx2
import pytest
from house_for_tests import OWNER, Starter
from pages_for_tests import cost, page, text

from beadmill.operations import tickets
from beadmill.operations.ports import Ports

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


async def write(ports: Ports, count: int, **more: Any) -> None:
    for n in range(count):
        await tickets.create(ports, "API", title=f"Ticket {n}", actor=OWNER, **more)


async def test_an_empty_home_shows_the_three_first_steps(signed_in: httpx2.AsyncClient) -> None:
    shown = await page(signed_in, "/")
    assert [one in text(shown) for one in ("Watch the demo", "Attach a repository", "Connect an agent")] == [True] * 3


async def test_a_path_that_is_no_repository_says_why_and_stays_in_the_field(signed_in: httpx2.AsyncClient) -> None:
    answer = await signed_in.post("/projects", data={"path": "/nowhere/at/all", "from": "welcome"})
    assert (answer.status_code, 'value="/nowhere/at/all"' in answer.text) == (422, True)
    assert "nothing was attached" in text(answer.text)


@pytest.mark.usefixtures("project")
async def test_an_empty_board_says_what_to_do(signed_in: httpx2.AsyncClient) -> None:
    said = text(await page(signed_in, "/"))
    assert "Nothing waits for you." in said
    assert "No drafts. Write a new ticket." in said


async def test_what_waits_for_a_person_stands_first(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    await started(title="Ask me")
    await write(ports, 1)
    shown = await page(signed_in, "/")
    assert shown.index("Ask me") < shown.index("Ticket 0")
    assert "Approval: Approve the PRD" in text(shown)


@pytest.mark.usefixtures("project")
async def test_c81_a_hostile_title_stays_text(signed_in: httpx2.AsyncClient, ports: Ports) -> None:
    await tickets.create(ports, "API", title=HOSTILE, description=HOSTILE, acceptance=HOSTILE, actor=OWNER)
    for path in ("/", "/tickets/API-1", "/tickets/new?title=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"):
        shown = await page(signed_in, path)
        assert ("<script>alert" in shown, "<img src=x" in shown) == (False, False)


@pytest.mark.usefixtures("project")
async def test_the_board_finds_by_words_and_by_project(signed_in: httpx2.AsyncClient, ports: Ports) -> None:
    await write(ports, 3)
    shown = await page(signed_in, "/?search=ticket+0&project=API")
    assert ("Ticket 0" in shown, "Ticket 1" in shown) == (True, False)


@pytest.mark.parametrize("count", [1, 30])
async def test_the_board_costs_the_same_however_full_it_is(ports: Ports, started: Starter, count: int) -> None:
    for _ in range(count):
        await started()
    await write(ports, count)
    shown, statements = await cost(ports.settings.home, "/")
    assert (shown.count('class="card"'), statements) == (2 * count, 15)


@pytest.mark.usefixtures("project")
async def test_only_the_part_that_changes_is_sent_to_a_live_page(signed_in: httpx2.AsyncClient) -> None:
    answer = await signed_in.get("/", headers={"HX-Request": "true"})
    assert ("<html" in answer.text, 'class="board"' in answer.text) == (False, True)
