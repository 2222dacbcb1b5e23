"""Fixtures that every part uses: a clean environment, a data home, a real git repository."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repositories_for_tests import repository_in

from beadmill.git import credentials, trust

Git = Callable[..., str]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also what is marked long: more of the same, minutes of it")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.together import Together

    return Together(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """What a script starts in the background ignores Ctrl-C, and so would every program of the tests."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the developer's home, git configuration or Beadmill settings."""
    for name in list(os.environ):
        if name.startswith(("BEADMILL_", "GIT_")) and not name.startswith("BEADMILL_TEST_"):
            monkeypatch.delenv(name)
    trust.keep(None)  # a house that an earlier test built keeps its own
    credentials.keep(None)
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("BEADMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (tmp_path / "user" / ".gitconfig").write_text(
        "[user]\n\tname = Test Person\n\temail = person@example.org\n[init]\n\tdefaultBranch = main\n"
        '[protocol "file"]\n\tallow = always\n'
    )


@pytest.fixture
def git() -> Git:
    """Runs git for a test's own set-up: ``git(path, "log")`` returns stdout, stripped."""

    def run(where: Path, *args: str) -> str:
        done = subprocess.run(["git", "-C", str(where), *args], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    return run


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A checkout with one commit on main and a bare ``origin`` beside it."""
    return repository_in(tmp_path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests wait for ``--long``, containers for a machine that can run them: test.sh has tried."""
    if "BEADMILL_TEST_PODMAN" not in os.environ:
        skip = pytest.mark.skip(reason="no container ran here: BEADMILL_TEST_PODMAN is not set (test.sh sets it)")
        for item in items:
            if item.get_closest_marker("container") is not None:
                item.add_marker(skip)
    later = [] if config.getoption("long") else [item for item in items if item.get_closest_marker("long") is not None]
    if later:
        config.hook.pytest_deselected(items=later)
        items[:] = [item for item in items if item not in set(later)]
