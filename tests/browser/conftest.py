"""A real daemon in a home of its own, and real Chromium signed in by its one-time link."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.async_api import Browser, Page, async_playwright, expect
from warm_for_tests import detached

from beadmill.cli import daemon
from beadmill.demo import material
from beadmill.operations.routes import ROUTES
from beadmill.web.record import Record

expect.set_options(timeout=20_000)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


@dataclass(frozen=True, slots=True)
class Site:
    """``place`` holds the demo's repository and scenario; the daemon serves its home."""

    place: material.Place
    record: Record

    async def call(self, operation: str, body: Any = None, *, etag: str = "", **values: str) -> Any:
        route, headers = ROUTES[operation], {"If-Match": etag} if etag else {}
        async with self._client() as client:
            answer = await client.request(route.method, route.url(**values), json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def attached(self) -> None:
        seats = {"council": {"seats": ["scripted/alpha", "scripted/beta", "scripted/gamma"]}}
        body = {"path": str(self.place.checkout), "short": "DEMO", "name": "Units", "overrides": seats}
        await self.call("projects.add", body)

    async def asking(self, title: str = "Say hello") -> str:
        """A ticket of the short SOP whose gate is open. Returns its key."""
        made = await self.call("tickets.create", {"project": "DEMO", "title": title, "sop": "hello"})
        await self.call("tickets.start", key=made["key"])
        await self.heard("gate.opened", ticket=made["key"])
        return str(made["key"])

    async def heard(self, event: str, *, ticket: str) -> None:
        """Returns when it has happened to the ticket."""
        address = ROUTES["events.since"].url()
        async with asyncio.timeout(30), self._client() as client:
            headers = {"Accept": "text/event-stream"}
            async with client.stream("GET", address, params={"topics": f"ticket:{ticket}"}, headers=headers) as stream:
                async for line in stream.aiter_lines():
                    if line == f"event: {event}":
                        return

    def _client(self) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {self.record.token}"}
        plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reads no certificates
        return httpx2.AsyncClient(base_url=self.record.url, headers=headers, trust_env=False, verify=plain)


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setattr(daemon, "detached", detached)
    place = material.Place(tmp_path / "site")
    place.home.mkdir(parents=True, mode=0o700)
    await material.make_repository(place)
    material.write_scenario(place)
    (place.home / "config.toml").write_text(
        f'[agents.scripted]\nscenario = "{place.scenario}"\n[defaults]\nmanual_qa = "off"\n'
    )
    record = await asyncio.to_thread(daemon.ensure, place.home, say=lambda _text: None, port=0)
    try:
        yield Site(place, record)
    finally:
        await asyncio.to_thread(daemon.stop, place.home, say=lambda _text: None)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One loop for the tests of a module, since they share a browser."""
    return "asyncio"


@pytest.fixture(scope="module")
async def chromium(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    path = os.environ.get("BEADMILL_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    assert path, "Chromium was not found: test.sh installs it"
    own: dict[str, str | float | bool] = {**os.environ, "HOME": str(tmp_path_factory.mktemp("chromium"))}
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=ARGUMENTS, env=own)
        try:
            yield browser
        finally:
            await browser.close()


Visitor = Callable[..., Awaitable[Page]]


@pytest.fixture
async def visitor(site: Site, chromium: Browser) -> AsyncIterator[Visitor]:
    """``await visitor()`` is a page of a browser profile of its own, signed in; it fails the test for an error on a page."""
    wrong: list[str] = []
    async with AsyncExitStack() as stack:

        async def enter(*, width: int = 1280, dark: bool = False) -> Page:
            scheme: Any = "dark" if dark else "light"
            context = await chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
            stack.push_async_callback(context.close)
            page = await context.new_page()
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
            token = (await site.call("logins.link"))["token"]
            await page.goto(f"{site.record.url}/sign-in#{token}")
            await page.wait_for_url(f"{site.record.url}/")
            return page

        yield enter
    assert wrong == []
