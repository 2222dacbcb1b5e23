from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.errors import Refused, Unavailable
from beadmill.git import locks
from beadmill.git.run import GitFailed, Repo, discover

Git = Callable[..., str]


@pytest.fixture
def here(repo: Path) -> Repo:
    return Repo(repo / ".git", repo)


def plant(place: Path, script: str) -> Path:
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
    return place


def wait_until_gone(pid: str) -> None:
    end = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end


async def test_a_failure_carries_gits_words_and_code(here: Repo) -> None:
    with pytest.raises(GitFailed, match="git cat-file failed: fatal: Not a valid object name nothing") as caught:
        await here.git("cat-file", "blob", "nothing")
    assert (caught.value.details["command"], caught.value.details["exit"]) == ("cat-file", 128)


async def test_planted_settings_run_nothing(here: Repo, repo: Path, git: Git, tmp_path: Path) -> None:
    mark = tmp_path / "planted"
    evil = plant(tmp_path / "evil", f"touch '{mark}'; exit 1")
    for setting in ("core.fsmonitor", "core.editor", "core.pager", "diff.external", "core.askPass"):
        git(repo, "config", setting, str(evil))
    plant(repo / ".git" / "hooks" / "post-index-change", f"touch '{mark}'")
    (repo / "README.md").write_text("changed\n")
    await here.git("status", "--porcelain")
    await here.git("add", "README.md")
    await here.git("diff-index", "-p", "--no-ext-diff", "HEAD")
    assert (await here.git("ls-remote", "http://127.0.0.1:9/x.git", ok=())).code == 128
    assert not mark.exists()


async def test_a_rewritten_git_file_changes_nothing(here: Repo, repo: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    linked = Repo(here.git_dir, tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / ".git").write_text("gitdir: /nowhere\n")
    assert (await linked.git("rev-parse", "HEAD")).text == (await here.git("rev-parse", "HEAD")).text


async def test_git_sees_none_of_our_secrets(here: Repo, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ("BEADMILL_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DATABASE_URL")
    for name in (*secrets, "GIT_DIR", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, "canary")
    git_env = (await here.git("-c", "alias.show-env=!env", "show-env")).text
    assert [line for line in git_env.splitlines() if "canary" in line] == []


async def test_credentials_in_an_address_are_not_repeated(here: Repo) -> None:
    done = await here.git("ls-remote", "http://me:secret@127.0.0.1:9/x.git", ok=())
    assert "secret" not in done.err
    assert "127.0.0.1" in done.err


async def test_a_lock_that_goes_away_is_waited_for(here: Repo, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = repo / ".git" / "index.lock"
    lock.touch()
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            lock.unlink()

    monkeypatch.setattr("beadmill.git.run.asyncio.sleep", pause)
    (repo / "a").write_text("a")
    await here.git("add", "a")
    assert waited == [0.05, 0.1, 0.2]


async def test_a_lock_that_stays_is_named(here: Repo, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beadmill.git.run.RETRIES", (0.0,))
    (repo / ".git" / "index.lock").touch()
    (repo / "a").write_text("a")
    with pytest.raises(Unavailable) as caught:
        await here.git("add", "a")
    assert (caught.value.code, caught.value.details) == ("GIT_LOCKED", {"lock": str(repo / ".git" / "index.lock")})


async def test_a_command_that_hangs_is_ended_with_all_it_started(here: Repo, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(Unavailable, match="did not end within") as caught:
        await here.git("-c", f"alias.hang=!echo $$ > '{pid}'; exec sleep 60", "hang", timeout=0.5)
    assert caught.value.code == "GIT_TIMEOUT"
    wait_until_gone(pid.read_text().strip())


async def test_a_missing_git_says_so(here: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable) as caught:
        await here.git("version")
    assert caught.value.code == "GIT_MISSING"


async def test_a_linked_worktree_is_found_with_its_common_folder(repo: Path, git: Git, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-qb", "linked", str(tmp_path / "linked tree"))
    assert await discover(tmp_path / "linked tree") == Repo(
        repo / ".git" / "worktrees" / "linked-tree", tmp_path / "linked tree", repo / ".git"
    )
    assert await discover(repo) == Repo(repo / ".git", repo)


async def test_a_lock_is_held_once_and_taken_again_by_the_same_act(tmp_path: Path) -> None:
    lock = tmp_path / "locks" / "a.lock"
    async with locks.locked(lock), locks.locked(lock):
        assert len(locks.inherited()) == 1
    assert locks.inherited() == ()
    async with locks.locked(lock, within=0.0):
        assert lock.stat().st_mode & 0o777 == 0o600


async def test_git_holds_the_lock_it_was_started_under(here: Repo, tmp_path: Path) -> None:
    lock, pid = tmp_path / "a.lock", tmp_path / "pid"
    command = f"alias.stay=!sleep 60 >/dev/null 2>&1 & echo $! > '{pid}'"
    async with locks.locked(lock):
        await here.git("-c", command, "stay")
    with pytest.raises(Unavailable) as caught:
        async with locks.locked(lock, within=0.0):
            raise AssertionError
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert caught.value.code == "REPOSITORY_BUSY"
    async with locks.locked(lock, within=10.0):
        assert len(locks.inherited()) == 1


async def test_a_git_that_others_may_replace_is_refused_not_missing(
    here: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir()
    plant(tmp_path / "open" / "git", 'exec /usr/bin/git "$@"')
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("PATH", str(tmp_path / "open"))
    with pytest.raises(Refused, match="everybody may write to") as refused:
        await here.git("status")
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(Unavailable, match="not installed") as missing:
        await here.git("status")
    assert (refused.value.code, missing.value.code) == ("GIT_REFUSED", "GIT_MISSING")
