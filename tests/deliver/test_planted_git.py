"""An agent without a sandbox plants what git would run for Beadmill. Nothing of it runs, whatever follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beadmill.git import trust
from tests.conftest import Git
from tests.deliver.bad_world import WORK, BadWorld, marker
from tests.workspaces.planted import OFF, STOPS, evil_program, script


@pytest.fixture
def world(tmp_path: Path, repo: Path) -> Iterator[BadWorld]:
    trust.keep(tmp_path / "trust")
    yield BadWorld.at(tmp_path, repo)
    trust.keep(None)


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    return evil_program(tmp_path)


TOGETHER = (  # one agent that does all of it
    "fsmonitor", "hooks path", "hooks", "editor and pager", "alias", "external diff", "record elsewhere", "index lock",
    "broken index", "grafts", "git file gone",
)  # fmt: skip


async def test_planted_hooks_and_records_are_found_said_and_never_run(world: BadWorld, evil: Path, git: Git) -> None:
    text = "\n".join(OFF[trick] for trick in TOGETHER)
    world.plays("coding", {"shell": script(text, evil=evil, repository=world.repository)}, *WORK, marker())
    await world.begins()
    async with world.daemon():
        await world.ends()
        assert world.blocked() == ("AGENT_ESCAPED", ("retry", "keep"))
        touched = world.gates()[0]["detail"]["details"]["touched"]
        await world.answer("keep")
        await world.until(lambda: world.run_state() == "completed")
    assert touched == ["in the checkout, the hooks changed", "in the checkout, the configuration changed"]
    assert not evil.with_name("ran").exists()
    assert "greet.py" in git(world.repository, "ls-tree", "--name-only", "beadmill/APP-1").split("\n")


@pytest.mark.parametrize("trick", ["filter", "ssh command"])
async def test_a_planted_program_stops_the_try_until_it_is_taken_back(
    world: BadWorld, evil: Path, git: Git, *, trick: str
) -> None:
    before = (world.repository / ".git" / "config").read_text()
    text = script(STOPS[trick], evil=evil, repository=world.repository)
    world.plays("coding", {"shell": text}, *WORK, marker())
    await world.begins()
    async with world.daemon():
        await world.ends()
        assert world.blocked() == ("REPOSITORY_SETTINGS_CHANGED", ("retry",))
        (world.repository / ".git" / "config").write_text(before)
        (world.repository / ".git" / "info" / "attributes").unlink(missing_ok=True)
        await world.answer("retry")
        await world.ends()
    assert (evil.with_name("ran").exists(), world.tries()) == (False, ["done"])
