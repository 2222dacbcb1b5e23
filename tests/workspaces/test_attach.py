from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.workspaces import attach

Git = Callable[..., str]


def codes(findings: tuple[attach.Finding, ...]) -> list[str]:
    return [finding.code for finding in findings]


async def test_a_good_checkout_has_no_problem(repo: Path) -> None:
    found = await attach.inspect(repo)
    assert found == attach.Repository(
        path=str(repo),
        base="main",
        remote="origin",
        remote_url=str(repo.parent / "origin.git"),
        branch="main",
        identity="Test Person <person@example.org>",
    )
    assert found.ok


async def test_a_folder_inside_means_the_whole_checkout(repo: Path) -> None:
    (repo / "sub ü").mkdir()
    assert (await attach.inspect(repo / "sub ü")).path == str(repo)


async def test_odd_paths_work(repo: Path, tmp_path: Path) -> None:
    odd = repo.rename(tmp_path / "a b ü 中文")  # noqa: ASYNC240
    found = await attach.inspect(odd)
    assert (found.path, found.problems) == (str(odd), ())


@pytest.mark.parametrize(("name", "code"), [("nowhere", "NO_FOLDER"), ("plain", "NOT_A_REPOSITORY"), ("bare", "BARE")])
async def test_what_is_no_checkout_is_named(tmp_path: Path, git: Git, *, name: str, code: str) -> None:
    (tmp_path / "plain").mkdir()
    git(tmp_path, "init", "-q", "--bare", "bare")
    found = await attach.inspect(tmp_path / name)
    assert (codes(found.problems), found.ok) == ([code], False)
    assert found.problems[0].next


async def test_an_empty_repository_is_named(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q", "empty")
    assert codes((await attach.inspect(tmp_path / "empty")).problems) == ["EMPTY", "NO_ORIGIN"]


async def test_a_base_that_is_not_there_is_named(repo: Path) -> None:
    assert codes((await attach.inspect(repo, base="nope")).problems) == ["BASE_MISSING"]


async def test_an_empty_remote_is_named(repo: Path, git: Git) -> None:
    git(repo.parent, "init", "-q", "--bare", "new.git")
    git(repo, "remote", "set-url", "origin", "../new.git")
    assert codes((await attach.inspect(repo)).problems) == ["REMOTE_EMPTY"]


async def test_a_missing_identity_is_named(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "user" / ".gitconfig").write_text("")
    found = await attach.inspect(repo)
    assert (codes(found.problems), found.identity) == (["GIT_IDENTITY_MISSING"], "")


async def test_a_dirty_detached_checkout_offline_is_a_warning(repo: Path, git: Git) -> None:
    (repo / "more").write_text("m")
    git(repo, "checkout", "-q", "--detach")
    (repo.parent / "origin.git").rename(repo.parent / "gone.git")
    found = await attach.inspect(repo, base="main")
    assert (codes(found.warnings), found.problems) == (["REMOTE_UNREACHABLE", "DIRTY", "DETACHED"], ())


async def test_detached_with_nothing_that_names_a_base_asks_for_one(repo: Path, git: Git) -> None:
    git(repo.parent / "origin.git", "symbolic-ref", "HEAD", "refs/heads/nowhere")
    git(repo, "checkout", "-q", "--detach")
    assert codes((await attach.inspect(repo)).problems) == ["BASE_UNDECIDED"]


async def test_a_shallow_clone_is_a_warning(repo: Path, git: Git) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    git(repo, "push", "-q")
    git(repo.parent, "clone", "-q", "--depth", "1", (repo.parent / "origin.git").as_uri(), "shallow")
    assert codes((await attach.inspect(repo.parent / "shallow")).warnings) == ["SHALLOW"]


async def test_credentials_of_the_remote_are_not_shown(repo: Path, git: Git) -> None:
    git(repo, "remote", "set-url", "origin", "http://me:secret@127.0.0.1:9/x.git")
    found = await attach.inspect(repo)
    assert found.remote_url == "http://127.0.0.1:9/x.git"
    assert "secret" not in str(found)


async def test_a_bare_layout_with_worktrees_is_one_repository(repo: Path, git: Git) -> None:
    place = repo.parent / "layout"
    place.mkdir()
    git(place, "clone", "-q", "--bare", str(repo.parent / "origin.git"), ".bare")
    (place / ".git").write_text("gitdir: ./.bare\n")
    git(place, "worktree", "add", "-q", "main", "main")
    found = await attach.inspect(place / "main")
    assert (found.path, found.base, found.problems) == (str(place / "main"), "main", ())
