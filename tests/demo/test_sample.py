"""The sample repository and the code of its beads: they really work, and the slip is a real bug."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.demo import material

CODE = material.SCENARIO / "code"
Suite = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return Path(shutil.copytree(material.SAMPLE, tmp_path / "sample", ignore=shutil.ignore_patterns("__pycache__")))


def suite(where: Path, *modules: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "unittest", *(modules or ("discover", "-s", "tests", "-t", "."))]
    return subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)


def put(where: Path, *paths: str) -> None:
    for path in paths:
        shutil.copy(CODE / path, where / path)


TEMPERATURE = ("units/temperature.py", "units/convert.py", "units/table.py", "tests/test_temperature.py")
BATCH = ("units/batch.py", "tests/test_batch.py")
COMMAND = ("units/__main__.py", "tests/test_batch_command.py", "README.md")


def test_the_sample_passes_its_own_tests(sample: Path) -> None:
    assert suite(sample).returncode == 0


@pytest.mark.parametrize("paths", [TEMPERATURE, BATCH], ids=["temperatures", "reader"])
def test_the_first_two_beads_need_nothing_of_each_other(sample: Path, paths: tuple[str, ...]) -> None:
    put(sample, *paths)
    assert suite(sample).returncode == 0


def test_the_command_needs_the_reader(sample: Path) -> None:
    put(sample, *TEMPERATURE, *COMMAND)
    assert suite(sample, "tests.test_batch_command").returncode == 1


def test_all_beads_together_pass_with_the_final_test(sample: Path) -> None:
    put(sample, *TEMPERATURE, *BATCH, *COMMAND, "tests/test_end_to_end.py")
    assert suite(sample).returncode == 0


def test_the_slip_fails_exactly_the_test_of_absolute_zero(sample: Path) -> None:
    put(sample, *TEMPERATURE)
    shutil.copy(CODE / "slip/temperature.py", sample / "units/temperature.py")
    done = suite(sample, "tests.test_temperature")
    assert done.returncode == 1
    failing = [line for line in done.stderr.splitlines() if line.startswith(("ERROR:", "FAIL:"))]
    assert [line.split(" ")[1] for line in failing] == ["test_absolute_zero_itself_is_a_temperature"]


def test_a_stale_bytecode_file_cannot_hide_a_change() -> None:
    """Python compares size and whole seconds: files that replace each other within a second must differ in size."""
    pairs = [(CODE / "slip/temperature.py", CODE / "units/temperature.py")]
    pairs += [(material.SAMPLE / f"units/{n}.py", CODE / f"units/{n}.py") for n in ("convert", "table", "__main__")]
    assert [a.name for a, b in pairs if a.stat().st_size == b.stat().st_size] == []


async def test_the_demo_repository_is_clean_and_pushed(tmp_path: Path, git: Callable[..., str]) -> None:
    place = material.Place(tmp_path / "with space and ü")
    place.root.mkdir()
    await material.make_repository(place)
    assert git(place.checkout, "status", "--porcelain", "--branch") == "## main...origin/main"
    assert git(place.checkout, "rev-parse", "HEAD") == git(place.origin, "rev-parse", "main")


async def test_making_the_demo_repository_again_changes_nothing(tmp_path: Path, git: Callable[..., str]) -> None:
    place = material.Place(tmp_path)
    await material.make_repository(place)
    before = git(place.checkout, "rev-parse", "HEAD")
    await material.make_repository(place)
    assert git(place.checkout, "rev-parse", "HEAD") == before


async def test_a_half_made_demo_repository_is_made_anew(tmp_path: Path, git: Callable[..., str]) -> None:
    place = material.Place(tmp_path)
    (tmp_path / "units.new").mkdir()
    place.origin.mkdir()
    await material.make_repository(place)
    assert git(place.checkout, "log", "--format=%s") == "Convert lengths and masses"
