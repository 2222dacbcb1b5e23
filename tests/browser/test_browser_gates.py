"""Gates in real browsers: live pages, two at once, the keyboard alone, a phone."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Site, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
async def attached(site: Site) -> None:
    await site.attached()


async def opened(page: Page, site: Site, key: str) -> None:
    await page.goto(f"{site.record.url}/tickets/{key}")
    await expect(page.get_by_role("button", name="Approve")).to_be_visible()


async def test_a_one_time_link_works_once(site: Site, visitor: Visitor) -> None:
    page = await visitor()
    token = (await site.call("logins.link"))["token"]
    await page.goto(f"{site.record.url}/sign-in#{token}")
    await page.wait_for_url(f"{site.record.url}/")
    await page.goto(f"{site.record.url}/sign-in#{token}")
    await expect(page.get_by_role("status")).to_contain_text("used already")
    fresh = (await site.call("logins.link"))["token"]
    await page.goto(f"{site.record.url}/sign-in#{fresh}")  # where the page of the used one lies still
    await page.wait_for_url(f"{site.record.url}/")


async def test_a_ticket_made_elsewhere_comes_to_the_board_by_itself(site: Site, visitor: Visitor) -> None:
    page = await visitor()
    await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    key = await site.asking("Come by yourself")
    needs = page.get_by_role("region", name="Needs input")
    await expect(needs.get_by_text("Come by yourself")).to_be_visible()
    await expect(page.get_by_role("link", name="Waiting for you").get_by_text("1")).to_be_visible()
    await expect(needs.get_by_text(key)).to_be_visible()


async def test_an_answer_moves_the_ticket_on(site: Site, visitor: Visitor) -> None:
    page = await visitor()
    key = await site.asking()
    await opened(page, site, key)
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("heading", name="How it ended")).to_be_visible()


async def test_the_second_browser_sees_who_answered_and_keeps_its_words(site: Site, visitor: Visitor) -> None:
    first, second = await visitor(), await visitor()
    key = await site.asking()
    await opened(first, site, key)
    await opened(second, site, key)
    await second.get_by_label("Note").fill("my own thoughts")
    await first.get_by_role("button", name="Approve").click()
    await expect(first.get_by_role("heading", name="How it ended")).to_be_visible()
    await expect(second.locator(".gate-notice")).to_contain_text("answered meanwhile: Approve · owner (web)")
    await expect(second.get_by_label("Note")).to_have_value("my own thoughts")
    async with second.expect_response(lambda r: r.request.method == "POST") as answered:
        await second.get_by_role("button", name="Reject").click()
    assert (await answered.value).status == 409
    await expect(second.get_by_role("alert")).to_contain_text("already answered")
    await expect(second.get_by_text("my own thoughts")).to_be_visible()


async def test_a_gate_is_answered_with_the_keyboard_alone(site: Site, visitor: Visitor) -> None:
    page = await visitor()
    key = await site.asking()
    await opened(page, site, key)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.keyboard.press("Enter")
    wanted = page.get_by_role("button", name="Approve")
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await wanted.evaluate("button => button === document.activeElement"):
            break
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="How it ended")).to_be_visible()


async def test_a_gate_is_answered_on_a_phone_from_the_inbox(site: Site, visitor: Visitor) -> None:
    page = await visitor(width=390)
    await site.asking("A rather long title that says what is to be done and does not fit on one line")
    await page.goto(f"{site.record.url}/gates")
    await page.get_by_role("main").locator("summary").first.click()
    await expect(page.get_by_role("button", name="Approve")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()


async def test_words_in_the_inbox_stay_when_somebody_else_answers(site: Site, visitor: Visitor) -> None:
    page = await visitor()
    await site.asking()
    await page.goto(f"{site.record.url}/gates")
    await page.get_by_role("main").locator("summary").first.click()
    await page.get_by_label("Note").fill("half a thought")
    gate = (await site.call("gates.listing"))["items"][0]
    await site.call("gates.answer", {"choice": "approved"}, etag=gate["etag"], gate=gate["id"])
    await expect(page.get_by_text("Something changed")).to_be_visible()
    await expect(page.get_by_label("Note")).to_have_value("half a thought")
