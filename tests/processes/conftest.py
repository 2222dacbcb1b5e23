from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.bad_world import BadWorld
from tests.processes.session_world import World
from tests.processes.shared_world import SharedWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def bad(tmp_path: Path) -> Iterator[BadWorld]:
    made = BadWorld(tmp_path)
    yield made
    made.close()


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[SharedWorld]:
    made = SharedWorld(tmp_path)
    yield made
    made.close()
