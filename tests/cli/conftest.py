"""The real command line against a real daemon, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_for_tests import Cli, git


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def cli(place: Path) -> Iterator[Cli]:
    """A home whose daemon starts at the first command and is stopped at the end."""
    made = Cli(place)
    yield made
    made("stop")


@pytest.fixture(scope="module")
def attached(cli: Cli, place: Path) -> Cli:
    """With a project API."""
    repo = place / "repo"
    git(place, "init", "-q", "--bare", "origin.git")
    git(place, "init", "-q", "-b", "main", "repo")
    (repo / "README.md").write_text("sample\n")
    for args in (
        ("config", "user.name", "Test Person"),
        ("config", "user.email", "person@example.org"),
        ("add", "."),
        ("commit", "-qm", "first"),
        ("remote", "add", "origin", str(place / "origin.git")),
        ("push", "-qu", "origin", "main"),
    ):
        git(repo, *args)
    assert cli("project", "add", str(repo), "--short", "API").code == 0
    return cli
