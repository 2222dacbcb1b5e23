"""A sign-in for git over http: handed over in the environment alone, and what a missing or bad one is called."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beadmill.errors import Unavailable
from beadmill.git import credentials, refs
from beadmill.git.run import Repo, discover
from tests.forges.fakes.gogs import GitHttp
from tests.forges.fakes.hub import TOKEN

Git = Callable[..., str]


@pytest.fixture
def server(repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHttp]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with GitHttp(repo.parent) as made:
        git(repo, "remote", "set-url", "origin", f"{made.url}/origin.git")
        yield made


def keep(password: str) -> list[str]:
    asked: list[str] = []

    async def lookup(url: str) -> tuple[str, str]:
        asked.append(url)
        return "robot", password

    credentials.keep(lookup)
    return asked


async def listed(repo: Repo) -> str:
    done = await repo.git("ls-remote", "origin", "refs/heads/main", ok=())
    if done.code:
        raise refs.outside(done, remote="origin", doing="asking")
    return done.text


async def test_a_known_sign_in_is_used(repo: Path, server: GitHttp, git: Git) -> None:
    asked = keep(TOKEN)
    assert (await listed(await discover(repo))).startswith(git(repo, "rev-parse", "main"))
    assert asked == [f"{server.url}/origin.git"]


async def test_a_push_goes_through_with_it(repo: Path, server: GitHttp, git: Git) -> None:
    keep(TOKEN)
    await (await discover(repo)).git("push", "-q", "origin", "HEAD:refs/heads/new")
    assert git(repo.parent / "origin.git", "rev-parse", "new") == git(repo, "rev-parse", "HEAD")


async def test_c19_a_missing_sign_in_is_said_within_seconds(repo: Path, server: GitHttp) -> None:
    began = time.monotonic()
    with pytest.raises(Unavailable, match="there are no credentials for the remote 'origin' at 127") as caught:
        await listed(await discover(repo))
    host = server.url.removeprefix("http://")
    assert (caught.value.code, caught.value.details, time.monotonic() - began < 10) == (
        "REMOTE_CREDENTIALS",
        {"host": host},
        True,
    )


async def test_c19_an_expired_sign_in_is_said_with_its_host(repo: Path, server: GitHttp) -> None:
    keep("expired-4f1b")
    with pytest.raises(Unavailable, match=r"at 127.0.0.1:[0-9]+ did not accept the credentials") as caught:
        await listed(await discover(repo))
    assert "expired-4f1b" not in f"{caught.value.envelope()}"


async def test_the_users_own_sign_in_comes_first(repo: Path, server: GitHttp, tmp_path: Path, git: Git) -> None:
    keep("ours-is-wrong")
    (tmp_path / "store").write_text(f"http://me:{TOKEN}@{server.url.removeprefix('http://')}\n")
    git(repo, "config", "--global", "credential.helper", f"store --file {tmp_path / 'store'}")
    assert await listed(await discover(repo))


async def test_a_command_that_stays_at_home_gets_no_password(repo: Path, server: GitHttp) -> None:
    asked = keep(TOKEN)
    await (await discover(repo)).git("status")
    assert asked == []


async def test_the_password_is_in_no_argv(repo: Path, server: GitHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git that keeps its arguments and the names of its variables stands before the real one."""
    keep(TOKEN)
    seen, real = repo.parent / "seen", shutil.which("git")
    tools = repo.parent / "tools"
    tools.mkdir(mode=0o755)
    program = tools / "git"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{seen}\nexec {real} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("BEADMILL_TRUSTED_EXECUTABLE_DIRS", str(tools))
    assert await listed(await discover(repo))
    assert ("ls-remote" in seen.read_text(), TOKEN in seen.read_text()) == (True, False)
