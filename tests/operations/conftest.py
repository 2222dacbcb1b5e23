from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from house_for_tests import OWNER, Starter, served, starter

from beadmill import app
from beadmill.domain.values import Actor
from beadmill.operations import projects, views
from beadmill.operations.ports import Ports


@pytest.fixture
def owner() -> Actor:
    return OWNER


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[app.House]:
    async with served(tmp_path / "home") as built:
        yield built


@pytest.fixture
def ports(house: app.House) -> Ports:
    return house.ports


@pytest.fixture
async def project(ports: Ports, repo: Path, owner: Actor) -> views.ProjectView:
    return await projects.add(ports, str(repo), short="API", actor=owner)


@pytest.fixture
def started(ports: Ports, project: views.ProjectView) -> Starter:
    return starter(ports)
