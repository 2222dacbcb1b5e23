"""Which forge a project has, and that a run gets it with its tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.domain.values import Actor
from beadmill.engine.port import Work
from beadmill.errors import BeadmillError, Unavailable
from beadmill.forges import registry
from beadmill.forges.credentials import Tokens
from beadmill.forges.gitlab import GitLabForge
from beadmill.operations import projects, views
from beadmill.operations.ports import Ports

Git = Callable[..., str]


def seen(project: views.ProjectView) -> tuple[str, str]:
    assert project.repository is not None
    return project.repository.forge, project.repository.forge_url


def at(repo: Path, git: Git, url: str) -> None:
    """The remote says ``url``. Nobody is reached there, so the local copy of the base is used."""
    git(repo, "remote", "set-url", "origin", url)
    git(repo, "config", "--global", "core.sshCommand", "false")


async def test_a_folder_as_origin_is_local(ports: Ports, repo: Path, owner: Actor) -> None:
    assert seen(await projects.add(ports, str(repo), actor=owner)) == ("local", "")


@pytest.mark.parametrize(
    ("url", "kind"),
    [("git@github.com:o/r.git", "github"), ("git@gitlab.com:g/s/p", "gitlab"), ("git@codeberg.org:o/r", "gitea")],
)
async def test_c72_a_known_host_says_its_forge(
    ports: Ports, repo: Path, owner: Actor, git: Git, *, url: str, kind: str
) -> None:
    at(repo, git, url)
    assert seen(await projects.add(ports, str(repo), actor=owner, base="main")) == (kind, "")


async def test_c72_another_host_is_not_guessed(ports: Ports, repo: Path, owner: Actor, git: Git) -> None:
    at(repo, git, "git@git.corp.test:g/p.git")
    with pytest.raises(BeadmillError) as caught:
        await projects.add(ports, str(repo), actor=owner, base="main")
    assert (caught.value.code, caught.value.details) == ("FORGE_UNKNOWN", {"host": "git.corp.test"})
    added = await projects.add(
        ports, str(repo), actor=owner, base="main", forge="gitlab", forge_url="https://corp.test/gitlab/"
    )
    assert seen(added) == ("gitlab", "https://corp.test/gitlab")


@pytest.mark.parametrize(
    ("forge", "url", "code"),
    [("svn", "", "FORGE"), ("gitea", "git.corp.test", "FORGE_URL"), ("", "ftp://x", "FORGE_URL")],
)
async def test_what_is_no_forge_is_refused(
    ports: Ports, repo: Path, owner: Actor, *, forge: str, url: str, code: str
) -> None:
    with pytest.raises(BeadmillError) as caught:
        await projects.add(ports, str(repo), actor=owner, forge=forge, forge_url=url)
    assert caught.value.code == code


async def test_the_forge_can_be_changed_and_other_changes_leave_it(
    ports: Ports, project: views.ProjectView, owner: Actor
) -> None:
    there = "https://git.corp.test"
    changed = await projects.change(ports, project.short, actor=owner, forge="gitea", forge_url=there)
    assert seen(changed) == ("gitea", there)
    assert seen(await projects.change(ports, project.short, actor=owner, name="Other")) == ("gitea", there)
    assert seen(await projects.change(ports, project.short, actor=owner, forge_url="")) == ("gitea", "")
    assert seen(await projects.change(ports, project.short, actor=owner, forge="")) == ("local", "")


def work(repo: Path, forge: str) -> Work:
    return Work("API-1", "t", "", "", "API", str(repo), "", "beadmill/API-1", "main", forge=forge)


def test_a_run_gets_its_forge_with_address_and_tokens(repo: Path) -> None:
    tokens = Tokens(repo)
    kept = registry.joined("gitlab", "https://corp.test/gitlab")
    one = work(repo, kept)
    made = registry.load(one.forge, Path(one.repository), remote=one.remote, tokens=tokens)
    assert isinstance(made, GitLabForge)
    assert (made.url, made.tokens, made.remote) == ("https://corp.test/gitlab", tokens, "origin")


@pytest.mark.parametrize("kind", ["local", "github", "gitlab", "gitea", "gogs", "direct"])
def test_every_kind_is_there(repo: Path, *, kind: str) -> None:
    assert registry.load(kind, repo).name == kind


def test_an_unknown_kind_is_named(repo: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        registry.load("nowhere", repo)
    assert caught.value.code == "NO_FORGE"
