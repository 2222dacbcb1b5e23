"""HTTP clients straight into the application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from beadmill.web.app import Web, create_app

PORT = 7420
TOKEN = "the-token-of-this-daemon"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
BASE = f"http://127.0.0.1:{PORT}"


@asynccontextmanager
async def client_of(web: Web, headers: dict[str, str]) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=create_app(web), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE, headers=headers) as client:
        yield client
