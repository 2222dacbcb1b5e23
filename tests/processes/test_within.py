"""What is written into a folder that agents write too goes nowhere else, whatever they planted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from beadmill.processes import within


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Something of the user's, beside the folder."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "file").write_text("mine\n")
    return place


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    return place


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_with_the_folders_above_it(home: Path) -> None:
    path = within.write(home, "a/b/file", "text\n")
    assert (path, path.read_text(), path.stat().st_mode & 0o777) == (home / "a/b/file", "text\n", 0o600)
    assert ((home / "a").stat().st_mode & 0o777, names(path.parent)) == (0o700, ["file"])


def test_what_holds_the_text_already_is_left_alone(home: Path) -> None:
    before = within.write(home, "file", "text\n").stat()
    assert within.write(home, "file", "text\n").stat() == before


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(home: Path, outside: Path) -> None:
    (home / "file").symlink_to(outside / "file")
    within.write(home, "file", "ours\n")
    assert ((home / "file").is_symlink(), (home / "file").read_text()) == (False, "ours\n")
    assert (outside / "file").read_text() == "mine\n"


def test_a_link_in_the_place_of_a_folder_is_replaced_not_followed(home: Path, outside: Path) -> None:
    (home / "a").symlink_to(outside)
    within.write(home, "a/file", "ours\n")
    within.link(home, "a/other", outside / "file")
    assert (names(home / "a"), names(outside)) == (["file", "other"], ["file"])
    assert (outside / "file").read_text() == "mine\n"


@pytest.mark.parametrize("planted", ["folder", "pipe", "file"])
def test_anything_else_that_stands_in_the_way_gives_way(home: Path, planted: str) -> None:
    place = home / "file"
    if planted == "folder":
        (place / "deep").mkdir(parents=True)
    elif planted == "pipe":
        os.mkfifo(place)
    else:
        place.write_text("x")
    assert within.write(home, "file", "ours\n").read_text() == "ours\n"


def test_a_file_gives_way_to_a_folder(home: Path) -> None:
    (home / "a").write_text("x")
    assert within.make(home, "a/b").is_dir()


@pytest.mark.parametrize("name", ["../file", "a/../../file", "/etc/file"])
def test_c84_nothing_leads_out(home: Path, name: str) -> None:
    with pytest.raises(ValueError, match="leads nowhere below"):
        within.write(home, name, "ours\n")


def test_a_sign_in_is_linked_once(home: Path, outside: Path) -> None:
    within.link(home, "a/auth", outside / "file")
    before = (home / "a/auth").lstat()
    within.link(home, "a/auth", outside / "file")
    assert ((home / "a/auth").readlink(), (home / "a/auth").lstat()) == (outside / "file", before)


def test_a_sign_in_that_a_cli_renewed_in_its_own_home_stays_until_the_users_is_newer(home: Path, outside: Path) -> None:
    (home / "auth").write_text("renewed")
    os.utime(outside / "file", (1, 1))
    within.link(home, "auth", outside / "file")
    renewed = (home / "auth").read_text()
    os.utime(outside / "file")
    os.utime(home / "auth", (1, 1))
    within.link(home, "auth", outside / "file")
    assert (renewed, (home / "auth").readlink()) == ("renewed", outside / "file")


def test_what_a_planted_link_leads_to_is_not_removed(home: Path, outside: Path) -> None:
    (home / "a").symlink_to(outside)
    within.remove(home, "a/file")
    within.remove(home, "a/file")
    assert (names(home / "a"), names(outside)) == ([], ["file"])
