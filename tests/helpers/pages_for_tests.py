"""Reading pages in tests: their text, their fields, and how many statements they cost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
from clients_for_tests import BEARER, PORT, TOKEN, client_of
from sqlalchemy import event

from beadmill import app
from beadmill.operations import logins
from beadmill.operations.ports import Ports
from beadmill.settings import Settings
from beadmill.web.app import Web
from beadmill.web.security import Door

HTML = {"Accept": "text/html"}


def text(page: str) -> str:
    """Visible words, one space between them."""
    body = re.sub(r"(?s)<(svg|head|script)\b.*?</\1>", " ", page)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def fields(page: str, action: str) -> dict[str, str]:
    """The hidden fields of the first form that posts to ``action``."""
    form = re.search(rf'(?s)<form[^>]*action="{re.escape(action)}".*?</form>', page)
    assert form, f"no form posts to {action}"
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form[0])
    return {name: unescape(value) for name, value in found}


async def page(client: httpx2.AsyncClient, path: str, status: int = 200) -> str:
    answer = await client.get(path, headers=HTML)
    assert answer.status_code == status, text(answer.text)
    return answer.text


async def cost(home: Path, path: str) -> tuple[str, int]:
    """A page and how many SQL statements it takes, read by a second installation whose engine does not run."""
    quiet = app.build(Settings(home=home))
    try:
        async with client_of(Web(quiet.ports, Door(PORT, logins.hashed(TOKEN))), BEARER) as client:
            with statements(quiet.ports) as seen:
                shown = await page(client, path)
        return shown, len(seen)
    finally:
        quiet.ports.store.close()


@contextmanager
def statements(ports: Ports) -> Iterator[list[str]]:
    """Every SQL statement of the store while it is open."""
    seen: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if not statement.startswith("BEGIN"):  # a snapshot costs nothing
            seen.append(statement)

    event.listen(ports.store.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(ports.store.engine, "before_cursor_execute", note)
