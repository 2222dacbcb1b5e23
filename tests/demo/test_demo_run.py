"""``beadmill demo`` as a person runs it: the real command line, daemon, worktrees and agents."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from beadmill.cli import daemon
from beadmill.demo import house, material
from beadmill.demo.main import run_demo
from beadmill.errors import Refused, Unavailable

ROOT = Path(__file__).parents[2]
# Read at import: the clean environment of the tests hides every BEADMILL_ variable.
CLIS = {
    name: os.environ.get(f"BEADMILL_TEST_{name.partition('_')[0].upper()}", "")
    for name in ("codex", "claude_code", "opencode")
}
Git = Callable[..., str]


@dataclass(frozen=True, slots=True)
class Told:
    """How one call of the command ended, and where the demo lies."""

    code: int
    out: str
    err: str
    place: material.Place

    @property
    def result(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.out)
        return said


def demo(home: Path, *options: str, **more: str) -> Told:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("BEADMILL_", "GIT_"))}
    env |= {"BEADMILL_HOME": str(home), "HOME": str(home.parent), "PYTHONPATH": str(ROOT / "src"), **more}
    command = [sys.executable, "-m", "beadmill.cli.main", "demo", "--json", *options]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return Told(done.returncode, done.stdout, done.stderr, material.Place(home / "demo"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """One whole run by the scripted agent; what it left is ended afterwards."""
    done = demo(tmp_path_factory.mktemp("demo") / "home")
    yield done
    asyncio.run(house.clear(done.place))


@pytest.mark.deliver
@pytest.mark.timeout(400)
class TestScripted:
    def test_the_result_is_one_line_and_the_change_is_merged(self, told: Told) -> None:
        assert (told.code, told.out.count("\n")) == (0, 1), told.err
        counted = {name: told.result[name] for name in ("ticket", "status", "visits", "beads", "retries", "gates")}
        beads = {"done": 3, "total": 3}
        assert counted == {
            "ticket": "DEMO-1",
            "status": "completed",
            "visits": 12,
            "beads": beads,
            "retries": 1,
            "gates": 7,
        }

    def test_the_first_try_is_told_with_its_reason(self, told: Told) -> None:
        failed = [line for line in told.err.splitlines() if "failed, its work was undone" in line]
        assert [line.split(":")[0].strip() for line in failed] == ["bead temperature-scales"]

    def test_it_is_said_that_the_model_is_scripted(self, told: Told) -> None:
        assert "The model is SCRIPTED" in told.err.splitlines()[0]

    def test_what_was_merged_works(self, told: Told, tmp_path: Path, git: Git) -> None:
        git(tmp_path, "clone", "-q", str(told.place.origin), "merged")
        suite = [sys.executable, "-m", "unittest", "discover", "-s", "tests", "-t", "."]
        done = subprocess.run(suite, cwd=tmp_path / "merged", capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.splitlines()[-3].partition(" in ")[0]) == (0, "Ran 28 tests")
        assert git(tmp_path / "merged", "rev-parse", "HEAD") == told.result["change"]["sha"]

    def test_the_checkout_was_not_touched(self, told: Told, git: Git) -> None:
        assert git(told.place.checkout, "status", "--porcelain") == ""
        assert git(told.place.checkout, "log", "--format=%s") == "Convert lengths and masses"

    def test_nothing_is_left_running(self, told: Told) -> None:
        assert daemon.find(told.place.home) is None

    def test_going_on_with_a_finished_demo_tells_the_same_result(self, told: Told) -> None:
        again = demo(told.place.root.parent, "--keep")
        assert again.code == 0, again.err
        assert {**again.result, "wall_seconds": 0} == {**told.result, "wall_seconds": 0}


# All three plan in one council (tests/deliver/test_mixed_council.py) and code in tests/agents; a whole demo takes minutes.
LONG = {"opencode": [pytest.mark.long], "claude_code": [pytest.mark.long]}


@pytest.mark.parametrize(
    "cli", [pytest.param(name, marks=[getattr(pytest.mark, name), *LONG.get(name, [])]) for name in CLIS]
)
@pytest.mark.deliver
@pytest.mark.timeout(600)
def test_a_real_cli_builds_the_same_change(tmp_path: Path, cli: str) -> None:
    done = demo(tmp_path / "home", "--agent", cli, BEADMILL_AGENTS=json.dumps({cli: {"path": CLIS[cli]}}))
    assert done.code == 0, done.err
    assert (done.result["change"]["state"], done.result["retries"]) == ("merged", 1)


@pytest.mark.parametrize("cli", CLIS)
def test_a_missing_cli_is_said_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cli: str
) -> None:
    monkeypatch.setenv("BEADMILL_AGENTS", json.dumps({cli: {"path": "/nowhere/cli"}}))
    assert run_demo(agent=cli, json=True) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["code"] == "AGENT_MISSING"
    assert "beadmill agent list" in said.err
    assert not house.place().root.exists()


async def test_a_folder_that_is_not_a_demo_is_never_removed(tmp_path: Path) -> None:
    place = material.Place(tmp_path / "precious")
    place.root.mkdir()
    (place.root / "thesis.txt").write_text("years of work")
    with pytest.raises(Refused, match="is not a demo"):
        await house.clear(place)
    assert (place.root / "thesis.txt").read_text() == "years of work"


async def test_an_interrupted_demo_goes_on_and_a_new_one_ends_it(tmp_path: Path) -> None:
    place = material.Place(tmp_path / "demo")
    with pytest.raises(asyncio.CancelledError):
        async with house.opened(place, agents=("scripted",), keep=False, stay=False, say=lambda _: None):
            raise asyncio.CancelledError
    assert daemon.find(place.home) is not None
    await house.clear(place)
    assert (daemon.find(place.home), place.root.exists()) == (None, False)


async def test_a_demo_that_fails_stops_its_daemon(tmp_path: Path) -> None:
    place = material.Place(tmp_path / "demo")
    with pytest.raises(Unavailable):
        async with house.opened(place, agents=("scripted",), keep=False, stay=False, say=lambda _: None):
            raise Unavailable("gone")
    assert daemon.find(place.home) is None


def test_the_persons_own_database_is_hidden_from_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEADMILL_DATABASE_URL", "postgresql+psycopg://precious")
    monkeypatch.setenv("BEADMILL_TESTING", "1")
    with house.without_settings():
        assert [name for name in os.environ if name.startswith("BEADMILL_") and "TEST_" not in name] == [
            "BEADMILL_TESTING"
        ]
    assert os.environ["BEADMILL_DATABASE_URL"] == "postgresql+psycopg://precious"


def test_a_command_is_told_for_the_home_of_the_demo(tmp_path: Path) -> None:
    home = tmp_path / "my home"
    assert house.command(home, "beadmill gate list") == f"BEADMILL_HOME='{home}' beadmill gate list"
