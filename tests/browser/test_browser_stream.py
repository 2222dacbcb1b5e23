"""The stream of a page: lost with its daemon and taken up again."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

from beadmill.cli import daemon
from tests.browser.conftest import Site, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


async def test_a_page_goes_on_after_its_daemon_was_away(site: Site, visitor: Visitor) -> None:
    await site.attached()
    page = await visitor()
    await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    home = site.place.home
    await asyncio.to_thread(daemon.stop, home, say=lambda _text: None)
    await expect(page.get_by_text("The daemon does not answer")).to_be_visible()
    record = await asyncio.to_thread(daemon.ensure, home, say=lambda _text: None, port=site.record.port)
    await Site(site.place, record).asking("Back again")
    await expect(page.get_by_role("region", name="Needs input").get_by_text("Back again")).to_be_visible()
    await expect(page.get_by_text("The daemon does not answer")).to_be_hidden()
