"""Manual QA in a real browser: fields that come as needed, saved while typed, files, a phone, the keyboard."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from qa_for_tests import PNG

from tests.browser.conftest import Site, Visitor
from tests.browser.test_browser_journey import violations
from tests.deliver.test_manual_qa import GATES, SOLO, item, listed, planned

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
TITLES = ("温度换算的结果可以直接阅读", "The wording of a mistake", "A file of many lines")


async def waiting(site: Site) -> str:
    """A ticket whose change is verified and waits to be checked. Returns the page's address."""
    items = [item(TITLES[0]), item(TITLES[1]), item(TITLES[2], severity="optional", watch_notes="The last line.")]
    reply = {"match": {"template": "qa_checklist"}, "steps": [{"reply": listed(*items)}]}
    mend = {"match": {"template": "qa_fix_beads"}, "steps": [{"shell": "ls"}, {"reply": planned()}]}
    told = json.loads(site.place.scenario.read_text())
    site.place.scenario.write_text(json.dumps({"replies": [reply, mend, *told["replies"]]}))
    await site.attached()
    overrides = {**SOLO, **GATES, "manual_qa": "on"}
    body = {"project": "DEMO", "title": "Convert temperatures", "overrides": overrides}
    key = (await site.call("tickets.create", body))["key"]
    await site.call("tickets.start", key=key)
    async with asyncio.timeout(150):
        while (await site.call("qa.show", key=key))["gate"] is None:  # noqa: ASYNC110 - a run of minutes
            await asyncio.sleep(0.5)
    return f"{site.record.url}/tickets/{key}"


async def mark(page: Page, title: str, result: str) -> None:
    await page.get_by_role("radiogroup", name=f"Result of {title}").get_by_label(result).check()


@pytest.mark.deliver
async def test_a_person_checks_a_change_in_the_browser(site: Site, visitor: Visitor, tmp_path: Path) -> None:
    page, address = await visitor(), await waiting(site)
    await page.goto(address)
    await page.get_by_role("link", name="Open the checklist").click()
    await mark(page, TITLES[0], "As expected")
    await expect(page.get_by_label("What you saw instead").nth(1)).to_be_hidden()
    await mark(page, TITLES[1], "Failed")
    await page.get_by_label("What you saw instead").nth(1).fill("It says nothing. 没有提示。")
    await mark(page, TITLES[2], "Could be better")
    await page.get_by_label("Title of the ticket").nth(2).fill("Show progress")
    await expect(page.get_by_text("1 passed · 1 failed · 0 waived · 1 to be improved · 0 open")).to_be_visible()
    await expect(page.get_by_text("Saved. You can leave and come back.")).to_be_visible()
    await attach(page, tmp_path)
    await page.reload()
    await expect(page.get_by_label("What you saw instead").nth(1)).to_have_value("It says nothing. 没有提示。")
    await expect(page.get_by_role("img", name="seen.png")).to_be_visible()
    assert await violations(page) == []
    await page.set_viewport_size({"width": 390, "height": 844})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await page.get_by_role("button", name="Submit the results").press("Enter")
    await page.wait_for_url(address)
    await site.heard("qa.improvement_created", ticket="DEMO-1")
    (made,) = [t for t in (await site.call("tickets.listing"))["items"] if t["title"] == "Show progress"]
    assert made["state"] == "draft"


async def attach(page: Page, folder: Path) -> None:
    """A picture and a page, to the second item; the page is no picture and is only offered for download."""
    (folder / "seen.png").write_bytes(PNG)
    (folder / "report.html").write_text("<script>alert(1)</script>")
    item_ = page.locator("fieldset.qaitem").nth(1)
    await item_.get_by_text("Note, links, files").click()
    await item_.locator("input[type=file]").set_input_files([folder / "seen.png", folder / "report.html"])
    await expect(item_.get_by_role("link", name="report.html")).to_have_attribute("download", "")
    await item_.get_by_role("button", name="Remove report.html").click()
    await expect(item_.get_by_role("link", name="report.html")).to_be_hidden()
