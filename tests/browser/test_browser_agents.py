"""The page of the agents: an install as it runs, cancelled, failed and done, and one real turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from registry_for_tests import Registry, registry

from tests.browser.conftest import Site, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """Asked for before the site: the daemon inherits where packages come from."""
    with registry() as made:
        made.add("@openai/codex", {"bin/codex": "#!/bin/sh\necho codex-cli 9.9.9\n"}, bin={"codex": "bin/codex"})
        monkeypatch.setenv("npm_config_registry", made.url)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
        monkeypatch.setenv("npm_config_fetch_retries", "0")
        monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex-home"))
        monkeypatch.setenv("BEADMILL_TRUSTED_EXECUTABLE_DIRS", str(tmp_path))
        yield made


@pytest.fixture
async def page(shop: Registry, site: Site, visitor: Visitor) -> Page:
    shown = await visitor()
    await shown.goto(f"{site.record.url}/agents")
    return shown


async def test_an_install_is_watched_left_and_found_done(page: Page, shop: Registry, site: Site) -> None:
    shop.go.clear()
    codex = page.locator("#agent-codex")
    await codex.get_by_role("button", name="Install").click()
    await asyncio.to_thread(shop.asked.wait, 30)
    await expect(codex.get_by_role("log")).to_contain_text("npm install --global")
    await page.goto(site.record.url)
    shop.go.set()
    await page.goto(f"{site.record.url}/agents")
    await expect(codex.get_by_text("ready · 9.9.9")).to_be_visible()
    await expect(codex.get_by_text("installed by Beadmill")).to_be_visible()
    await expect(codex.get_by_text("codex login")).to_be_visible()


async def test_an_install_is_cancelled_and_a_failed_one_says_what_to_do(page: Page, shop: Registry) -> None:
    shop.go.clear()
    codex = page.locator("#agent-codex")
    await codex.get_by_role("button", name="Install").click()
    await codex.get_by_role("button", name="Cancel the install").click()
    await expect(codex.get_by_text("The install was canceled.")).to_be_visible()
    shop.packages.clear()
    shop.go.set()
    await codex.get_by_role("button", name="Install").click()
    await expect(codex.get_by_text("The install failed.")).to_be_visible()
    await expect(codex.get_by_text("this registry has no such package")).to_be_visible()


async def test_one_real_turn_shows_its_answer_or_its_failure(page: Page) -> None:
    scripted = page.locator("#agent-scripted")
    await scripted.get_by_text("Try one real turn").click()
    await scripted.get_by_role("button", name="Take the turn").click()
    await expect(scripted.get_by_text("The turn failed:")).to_be_visible()
    await scripted.get_by_role("button", name="Look again").click()
    await scripted.get_by_text("Models (1)").click()
    await expect(scripted.get_by_text("any name: a scenario may match it")).to_be_visible()
