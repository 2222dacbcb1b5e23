"""One daemon per module, with the project GRUE; started by its first command, stopped at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.small_world import Small


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    made = Small(tmp_path_factory.mktemp("small"))
    made.make()
    attached = made.cli("project", "add", str(made.checkout), "--short", "GRUE")
    assert attached.code == 0, attached.err
    yield made
    made.cli("stop")


@pytest.fixture
def small(place: Small) -> Iterator[Small]:
    """Afterwards the scenario is as written and nothing runs, so a project's places are free again."""
    yield place
    place.script()
    for ticket in place.cli("ticket", "list", "--json").json["items"]:
        if ticket["state"] == "active":
            place.cli("ticket", "cancel", ticket["key"])
