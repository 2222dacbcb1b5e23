"""One daemon per module, with the project GRUE; started by its first command, stopped at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.small_world import Small


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    made = Small(tmp_path_factory.mktemp("small"))
    made.make()
    attached = made.cli("project", "add", str(made.checkout), "--short", "GRUE")
    assert attached.code == 0, attached.err
    yield made
    made.cli("stop")


@pytest.fixture(autouse=True)
def as_written(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that mends the scenario or the checkout leaves them as they were."""
    yield
    if "small" in request.fixturenames:
        small: Small = request.getfixturevalue("small")
        small.script()
