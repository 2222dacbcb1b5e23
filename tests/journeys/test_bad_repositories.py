"""What may be wrong with a folder that is attached, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.journeys.small_world import Small

Make = Callable[[Small, Path], object]


def started(small: Small, path: Path) -> None:
    path.mkdir()
    small.git("init", "-q", "-b", "main", at=path)


def committed(small: Small, path: Path) -> None:
    started(small, path)
    (path / "README.md").write_text("sample\n")
    small.git("add", ".", at=path)
    small.git("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "first", at=path)


def with_remote(small: Small, path: Path) -> None:
    committed(small, path)
    bare = path.with_suffix(".git")
    small.git("init", "-q", "--bare", "-b", "main", str(bare), at=path)
    small.git("remote", "add", "origin", str(bare), at=path)
    small.git("push", "-qu", "origin", "main", at=path)
    small.git("config", "user.name", "A", at=path)
    small.git("config", "user.email", "a@example.org", at=path)


def plain(_small: Small, path: Path) -> None:
    path.mkdir()


def nothing(_small: Small, _path: Path) -> None:
    """There is no folder."""


def bare(small: Small, path: Path) -> None:
    small.git("init", "-q", "--bare", str(path), at=path.parent)


CASES: list[tuple[Make, str, tuple[str, str]]] = [
    (nothing, "NO_FOLDER", ("there is no folder {path}", "Check the path.")),
    (
        plain,
        "NOT_A_REPOSITORY",
        ("{path} is not inside a git repository", "Run git init there, or choose another."),
    ),
    (started, "EMPTY", ("the repository has no commit yet", "Make a first commit and push it.")),
    (bare, "BARE", ("{path} is a bare repository", "Attach a checkout of it (git clone).")),
    (
        committed,
        "NO_ORIGIN",
        (
            "the repository has no remote named 'origin', so there is nowhere to propose a change",
            "Add one (git remote add origin <address>; a bare folder on this machine works) and push the base.",
        ),
    ),
]


@pytest.mark.parametrize(("make", "code", "told"), CASES)
def test_a_folder_that_cannot_be_attached_is_refused_with_the_way_out(
    small: Small, tmp_path: Path, make: Make, code: str, told: tuple[str, str]
) -> None:
    path = tmp_path / "my grüße 中文"
    make(small, path)
    said = small.cli("project", "add", str(path), "--json")
    error = said.json["error"]
    assert (said.code, error["code"], error["message"]) == (2, code, told[0].format(path=path))
    assert (error["kept"], error["next"]) == ("nothing was attached", told[1])


def test_a_base_that_does_not_exist_is_refused(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "somewhere"
    with_remote(small, path)
    said = small.cli("project", "add", str(path), "--base", "nowhere", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "BASE_MISSING")
    assert "'nowhere'" in said.json["error"]["message"]


def test_a_repository_without_an_identity_is_refused_with_the_command_that_sets_one(
    small: Small, tmp_path: Path
) -> None:
    path = tmp_path / "nobody"
    with_remote(small, path)
    small.git("config", "--unset", "user.email", at=path)
    said = small.cli("project", "add", str(path))
    assert (said.code, "git config" in said.err, "kept: nothing was attached" in said.err) == (2, True, True)


def test_a_dirty_checkout_is_a_warning(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "dirty"
    with_remote(small, path)
    (path / "new.txt").write_text("mine\n")
    said = small.cli("project", "add", str(path), "--short", "DIRTY")
    warning = "! the checkout has 1 uncommitted files; tickets start from the base and leave them alone."
    assert (said.code, warning in said.out) == (0, True)


def test_a_repository_is_attached_once(small: Small) -> None:
    said = small.cli("project", "add", str(small.checkout))
    told = f"error: {small.checkout} is attached already, as GRUE\nnext: beadmill project show GRUE\n"
    assert (said.code, said.err) == (4, told)


def test_a_short_name_is_given_once_and_must_prefix_keys(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "other"
    with_remote(small, path)
    taken, odd = (small.cli("project", "add", str(path), "--short", short) for short in ("grue", "1-2"))
    assert (taken.code, taken.err.splitlines()[0]) == (4, "error: another project has the short name GRUE")
    assert (odd.code, odd.err.splitlines()[0]) == (2, "error: '1-2' cannot prefix ticket keys")
