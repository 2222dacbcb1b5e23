"""The application over a real installation, asked as a browser or a program would, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from clients_for_tests import BEARER, PORT, TOKEN, client_of
from house_for_tests import OWNER, Starter, served, starter

from beadmill import app as composition
from beadmill.operations import logins, projects
from beadmill.operations.ports import Ports
from beadmill.web.app import Web
from beadmill.web.security import Door


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[composition.House]:
    async with served(tmp_path / "home") as built:
        yield built


@pytest.fixture
def ports(house: composition.House) -> Ports:
    return house.ports


@pytest.fixture
def web(ports: Ports) -> Web:
    return Web(ports, Door(PORT, logins.hashed(TOKEN)))


@pytest.fixture
async def nobody(web: Web) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(web, {}) as client:
        yield client


@pytest.fixture
async def cli(web: Web) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(web, BEARER) as client:
        yield client


@pytest.fixture
async def signed_in(web: Web, cli: httpx2.AsyncClient) -> AsyncIterator[httpx2.AsyncClient]:
    """Signed in by a one-time link."""
    token = (await cli.post("/api/v1/links")).json()["token"]
    async with client_of(web, {"Sec-Fetch-Site": "same-origin"}) as client:
        entered = await client.post("/sign-in", json={"token": token})
        assert entered.status_code == 200
        yield client


@pytest.fixture
def started(ports: Ports, project: Any) -> Starter:
    return starter(ports)


@pytest.fixture
async def project(ports: Ports, repo: Path) -> Any:
    return await projects.add(ports, str(repo), short="API", actor=OWNER)
