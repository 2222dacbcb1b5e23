"""Settings on the screen: of the installation, a project, a draft and a ticket that runs."""

from __future__ import annotations

import re

import httpx2
import pytest
from house_for_tests import OWNER, Starter
from pages_for_tests import fields, page, text

from beadmill.leaves import leaves
from beadmill.operations import projects, settings, tickets
from beadmill.operations.ports import Ports
from beadmill.web.pages import words

pytestmark = pytest.mark.usefixtures("project")


def settings_of(page: str) -> set[str]:
    return set(re.findall(r'<(?:input|select|textarea) name="set\.([^"]+)"', page))


async def test_every_group_of_settings_has_a_title() -> None:
    assert {leaf.group for leaf in leaves().values()} == set(words.SETTINGS)


@pytest.mark.parametrize("address", ["/settings", "/projects/API", "/tickets/new"])
async def test_every_setting_has_a_field(signed_in: httpx2.AsyncClient, address: str) -> None:
    shown = await page(signed_in, address)
    titles = [name for name in words.SETTINGS.values() if shown.count(f"<summary>{name}</summary>") != 1]
    assert (settings_of(shown), titles) == (set(leaves()), [])


async def test_the_installations_settings_are_written_to_its_file(signed_in: httpx2.AsyncClient, ports: Ports) -> None:
    answer = await signed_in.post("/settings", data={"set.council.quorum": "3", "set.build.attempts": ""})

    assert (answer.status_code, ports.profile.path.read_text()) == (303, "[defaults.council]\nquorum = 3\n")


@pytest.mark.parametrize("address", ["/settings", "/projects/API"])
async def test_a_wrong_value_is_named_at_its_field_and_kept(signed_in: httpx2.AsyncClient, address: str) -> None:
    answer = await signed_in.post(address, data={"name": "api", "set.build.attempts": "99"})

    assert answer.status_code == 422
    assert (
        'value="99" placeholder="5 (default)" aria-invalid="true" aria-describedby="bad-build.attempts"' in answer.text
    )
    assert '<p class="flagline" id="bad-build.attempts">Input should be less than or equal to 20</p>' in answer.text


async def test_a_project_inherits_what_its_form_leaves_empty(signed_in: httpx2.AsyncClient, ports: Ports) -> None:
    await projects.change(ports, "API", overrides={"build": {"attempts": 3}, "sandbox": "host"}, actor=OWNER)
    data = {"name": "api", "set.build.attempts": "", "set.sandbox": "host", "set.questions.enabled": "false"}
    await signed_in.post("/projects/API", data=data)

    kept = (await projects.show(ports, "API", actor=OWNER)).overrides
    assert kept == {"sandbox": "host", "questions": {"enabled": False}}


async def test_a_running_ticket_takes_what_it_reads_again_and_shows_from_when(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    ticket = await started()
    address = f"/tickets/{ticket.key}/settings"
    offered = settings_of(await page(signed_in, address))
    answer = await signed_in.post(address, data={"set.build.attempts": "3"})
    shown = text(await page(signed_in, address))

    assert offered == {path for path, leaf in leaves().items() if leaf.live}
    assert (answer.status_code, "The run still goes by 5; from the next try by 3" in shown) == (303, True)


async def test_what_is_frozen_is_refused_with_the_reason(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    ticket = await started()
    answer = await signed_in.post(f"/tickets/{ticket.key}/settings", data={"set.council.mode": "solo"})

    assert (answer.status_code, "council.mode cannot be changed any more" in answer.text) == (409, True)


async def test_a_value_that_the_environment_replaces_says_so(
    signed_in: httpx2.AsyncClient, ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEADMILL_DEFAULTS__BUILD__ATTEMPTS", "4")
    await settings.change(ports, {"build.attempts": 3}, actor=OWNER)
    assert "does not count here: environment" in text(await page(signed_in, "/settings"))


async def test_a_draft_can_have_no_limit_where_its_project_has_one(signed_in: httpx2.AsyncClient, ports: Ports) -> None:
    await projects.change(ports, "API", overrides={"budget": {"usd": 5}}, actor=OWNER)
    draft = await tickets.create(ports, "API", title="One", actor=OWNER)
    shown = fields(await page(signed_in, f"/tickets/{draft.key}"), f"/tickets/{draft.key}/edit")
    await signed_in.post(f"/tickets/{draft.key}/edit", data={**shown, "title": "One", "set.budget.usd": "none"})

    assert (await tickets.show(ports, draft.key, actor=OWNER)).effective["budget"]["usd"] is None
