"""A new user's whole way in the browser: attach, write, start, answer, approve, merge; and axe-core on what they see."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from beadmill.demo import material
from tests.browser.conftest import Site, Visitor

pytestmark = [pytest.mark.browser]
LONG = 90_000  # ms an agent's stage may take on a busy machine
SEATS = "scripted/alpha\nscripted/beta\nscripted/gamma"


async def violations(page: Page) -> list[str]:
    """What axe-core finds wrong, as ``rule: selector``: by all rules in light, by that on contrast in dark."""
    script = os.environ.get("BEADMILL_TEST_AXE", "")
    assert script, "BEADMILL_TEST_AXE names axe.min.js: test.sh installs it"
    await page.evaluate(await asyncio.to_thread(Path(script).read_text))
    found: list[Any] = []
    for scheme, rules in (("dark", {"runOnly": {"type": "rule", "values": ["color-contrast"]}}), ("light", {})):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        said = await page.evaluate("rules => axe.run(document, {resultTypes: ['violations'], ...rules})", rules)
        found += [(scheme, violation) for violation in said["violations"]]
    return [f"{scheme}: {v['id']}: {json.dumps(n['target'])}" for scheme, v in found for n in v["nodes"]]


async def attach_and_start(page: Page, site: Site) -> None:
    """From the first page of an empty home to a running ticket."""
    await page.get_by_label("Path").fill(str(site.place.checkout))
    await page.get_by_label("Prefix of ticket keys").fill("DEMO")
    await page.get_by_role("button", name="Attach").click()
    await page.get_by_label("Council seats").fill(SEATS)
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("link", name="New ticket").click()
    for name in ("title", "description", "acceptance"):
        await page.get_by_label(name.capitalize()).fill(material.ticket()[name])
    await page.get_by_role("button", name="Save and start").click()


async def answer_batch(page: Page) -> None:
    """What the demo's person says, into the fields of the batch."""
    gate = page.locator(".gate.interview")
    names = await gate.locator("textarea[name^='q.']").evaluate_all("all => all.map(one => one.name.split('.')[1])")
    for name in names:
        said = material.answers().get(name, {"skipped": True})
        for option in said.get("selected_option_ids", ()):
            await gate.locator(f"input[name='q.{name}.option'][value='{option}']").check()
        if said.get("skipped"):
            await gate.locator(f"input[name='q.{name}.skip']").check()
        await gate.locator(f"textarea[name='q.{name}.text']").fill(said.get("free_text", ""))
    await page.get_by_role("button", name="Send the answers").click()


async def gate_of(page: Page, title: str) -> None:
    """Waits for the gate, as a person who watches the page."""
    await expect(page.get_by_role("heading", name=title)).to_be_visible(timeout=LONG)


@pytest.mark.deliver
@pytest.mark.timeout(400)
async def test_a_new_user_brings_a_ticket_to_its_merge_in_the_browser(site: Site, visitor: Visitor) -> None:
    page = await visitor()
    await attach_and_start(page, site)
    await gate_of(page, "3 questions about the ticket")
    assert await violations(page) == []
    await answer_batch(page)
    await gate_of(page, "1 question about the ticket")
    await answer_batch(page)
    for title in ("Approve the interview", "Approve the requirements", "Approve the plan", "Approve the setup"):
        await gate_of(page, title)
        assert await violations(page) == []
        await page.get_by_role("button", name="Approve").click()
    await gate_of(page, "Merge #1")
    assert await violations(page) == []
    await page.get_by_role("button", name="Merge", exact=True).click()
    await expect(page.get_by_role("heading", name="How it ended")).to_be_visible(timeout=LONG)
    await expect(page.get_by_text("merged into")).to_be_visible()
    for pane in ("beads", "beads/temperature-scales", "change", "sessions", "history", "nodes/prd", "nodes/verify"):
        await page.goto(f"{site.record.url}/tickets/DEMO-1/{pane}")
        assert (pane, await violations(page)) == (pane, [])


@pytest.mark.timeout(240)
async def test_no_page_has_a_violation_of_axe(site: Site, visitor: Visitor) -> None:
    page = await visitor()
    assert ("welcome", await violations(page)) == ("welcome", [])
    await site.attached()
    key = await site.asking("中文标题：把温度也换算，并且一次处理整个文件")
    draft = await site.call("tickets.create", {"project": "DEMO", "title": "A draft"})
    plain = ("", "gates", "runs", "sops", "sops/deliver", "agents", "projects", "projects/DEMO", "settings", "nowhere")
    own = ("settings/prompts", "settings/prompts/scan", "runs/DEMO-1-r1/context")
    for path in (
        *plain,
        *own,
        "tickets/new",
        f"tickets/{key}",
        f"tickets/{draft['key']}",
        "runs/DEMO-1-r1",
        "tickets/NO-1",
    ):
        await page.goto(f"{site.record.url}/{path}")
        assert (path, await violations(page)) == (path, [])


@pytest.mark.timeout(120)
async def test_axe_sees_what_breaks_its_rules(visitor: Visitor) -> None:
    page = await visitor()
    await page.evaluate("document.querySelector('main').append(document.createElement('img'))")
    await page.evaluate("document.querySelector('h1').style.color = '#333'")
    assert await violations(page) == ['dark: color-contrast: ["h1"]', 'light: image-alt: ["img"]']


@pytest.mark.timeout(180)
async def test_answers_that_are_being_written_survive_a_reload(site: Site, visitor: Visitor) -> None:
    page = await visitor()
    await attach_and_start(page, site)
    await gate_of(page, "3 questions about the ticket")
    await page.get_by_label("Answer").fill("six digits")
    await expect(page.get_by_text("Saved. You can leave and come back.")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("Answer")).to_have_value("six digits")
    await expect(page.get_by_text("Your saved answers are filled in.")).to_be_visible()
