"""An editor in real browsers: drafts of two windows, coming back, buttons of a form on a phone."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from beadmill.demo import material
from tests.browser.conftest import Site, Visitor
from tests.browser.test_browser_journey import LONG, violations

pytestmark = [pytest.mark.browser, pytest.mark.deliver, pytest.mark.timeout(300)]


async def interviewed(page: Page, site: Site) -> str:
    """A ticket whose interview waits for approval. The address of that document."""
    key = (await site.call("tickets.create", {"project": "DEMO", **material.ticket()}))["key"]
    await site.call("tickets.start", key=key)
    await page.goto(f"{site.record.url}/tickets/{key}")
    for title in ("3 questions about the ticket", "1 question about the ticket"):
        await expect(page.get_by_role("heading", name=title)).to_be_visible(timeout=LONG)
        now = await site.call("interviews.show", key=key)
        said = {q["id"]: material.answers().get(q["id"], {"skipped": True}) for q in now["questions"]}
        await site.call("interviews.answer", {"answers": said}, etag=now["gate"]["etag"], key=key)
    await expect(page.get_by_role("heading", name="Approve the interview")).to_be_visible(timeout=LONG)
    address = await page.get_by_role("link", name="Edit the text").get_attribute("href")
    return f"{site.record.url}{str(address).partition('?')[0]}"


async def two_windows(first: Page, second: Page, address: str) -> None:
    """The second one is told, and its words replace the saved ones only when it says so."""
    for page in (first, second):
        await page.goto(f"{address}?edit=text")
    await first.locator("#text").fill("colour: red\n")
    await expect(first.locator("#wrongs")).to_contain_text("unknown key colour")
    await expect(first.locator(".gutter .bad")).to_have_text("1")
    await expect(first.locator(".keep .saved")).to_contain_text("Draft saved")
    await second.locator("#text").fill("size: 3\n")
    await expect(second.locator(".keep .saved")).to_contain_text("Another window saved a draft")
    await second.get_by_role("button", name="Keep mine instead").click()
    await expect(second.locator(".keep .saved")).to_contain_text("Draft saved")


async def test_words_of_an_editor_survive_and_a_form_is_saved_on_a_phone(site: Site, visitor: Visitor) -> None:
    await site.attached()
    page, phone = await visitor(), await visitor(width=390, dark=True)
    address = await interviewed(page, site)
    await two_windows(page, phone, address)
    await page.goto(f"{address}?edit=text")
    await expect(page.locator("#text")).not_to_have_value("size: 3\n")
    await page.get_by_role("link", name="Take them up again").click()
    await expect(page.locator("#text")).to_have_value("size: 3\n")
    assert await violations(page) == []
    await phone.goto(f"{address}?edit=form")
    phone.once("dialog", lambda asked: asked.accept())
    await phone.get_by_role("button", name="Discard").click()
    await phone.goto(f"{address}?edit=form")
    assert (await violations(phone), await phone.evaluate("document.documentElement.scrollWidth")) == ([], 390)
    await phone.get_by_label("Goals").fill("Convert temperatures\nRefuse what is too cold")
    await phone.locator(".keep").get_by_role("button", name="Save as a new version").click()
    await expect(phone.get_by_role("heading", name="Approve the interview")).to_be_visible()
    await phone.get_by_role("link", name="Compare versions").click()
    await expect(phone.get_by_text("edited by a person").first).to_be_visible()
