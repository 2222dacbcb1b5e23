"""From a remote's address to the service: C72 of the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.errors import Invalid, Unavailable
from beadmill.forges import address
from beadmill.forges.address import Address, Place
from beadmill.git import credentials as sign_ins
from beadmill.git import remotes
from beadmill.git.run import discover
from beadmill.workspaces import bases
from tests.forges.fakes.gogs import GitHttp
from tests.forges.fakes.hub import TOKEN

Git = Callable[..., str]


@pytest.mark.parametrize(
    ("url", "host", "path", "web"),
    [
        ("ssh://git@git.corp.test:2222/grp/sub/proj.git", "git.corp.test", "grp/sub/proj", ""),
        ("https://ghe.corp.test/o/r", "ghe.corp.test", "o/r", "https://ghe.corp.test"),
        ("https://me:pw@Git.Corp.Test:8443/o/r.git/", "git.corp.test", "o/r", "https://git.corp.test:8443"),
        ("git@github.com:o/r.git", "github.com", "o/r", ""),
        ("github.com:/o/r", "github.com", "o/r", ""),
        ("ssh://git@ssh.github.com:443/o/r.git", "github.com", "o/r", ""),
        ("https://corp.test/gitlab/g/p", "corp.test", "gitlab/g/p", "https://corp.test"),
        ("https://corp.test/g/with%20space.git", "corp.test", "g/with space", "https://corp.test"),
        ("ssh://git@[::1]/o/r", "::1", "o/r", ""),
    ],
)
def test_c72_an_address_is_taken_apart(url: str, host: str, path: str, web: str) -> None:
    assert address.parse(url) == Address(host, path, web)


@pytest.mark.parametrize("url", ["/srv/x.git", "../x.git", "./a:b", "file:///srv/x.git", "~/x.git", "ext::sh -c id"])
def test_a_folder_is_no_host(url: str) -> None:
    assert address.parse(url) is None


def test_c72_hosts_that_everybody_knows_say_their_kind_and_others_do_not() -> None:
    urls = ("git@github.com:o/r", "https://gitlab.com/g/s/p", "https://codeberg.org/o/r", "https://git.corp.test/o/r")
    assert [address.kind_of(url) for url in (*urls, "/srv/x.git")] == ["github", "gitlab", "gitea", "", "local"]


@pytest.mark.parametrize(
    ("kind", "url", "said", "api", "project"),
    [
        ("github", "git@github.com:o/r.git", "", "https://api.github.com", "o/r"),
        ("github", "https://ghe.corp.test/o/r", "", "https://ghe.corp.test/api/v3", "o/r"),
        ("github", "https://corp.ghe.com/o/r", "", "https://api.corp.ghe.com", "o/r"),
        ("gitlab", "ssh://git@git.corp.test:2222/grp/sub/proj.git", "", "https://git.corp.test/api/v4", "grp/sub/proj"),
        (
            "gitlab",
            "https://corp.test/gitlab/g/p",
            "https://corp.test/gitlab",
            "https://corp.test/gitlab/api/v4",
            "g/p",
        ),
        ("gitlab", "git@corp.test:g/p.git", "https://corp.test/gitlab", "https://corp.test/gitlab/api/v4", "g/p"),
        ("gitea", "https://corp.test/git/o/r", "", "https://corp.test/git/api/v1", "o/r"),
        ("gitea", "git@codeberg.org:o/r.git", "", "https://codeberg.org/api/v1", "o/r"),
        ("gogs", "http://127.0.0.1:3000/o/r.git", "", "http://127.0.0.1:3000/api/v1", "o/r"),
        ("gitea", "ssh://git@corp.test:2222/o/r", "http://corp.test:3000", "http://corp.test:3000/api/v1", "o/r"),
    ],
)
def test_c72_the_api_is_found_for_every_layout(kind: str, url: str, said: str, api: str, project: str) -> None:
    found = address.parse(url)
    assert found is not None
    place = address.place(kind, found, url=said)
    assert (place.api, place.project) == (api, project)


def test_c72_a_project_below_groups_is_one_part_of_a_path() -> None:
    place = Place("gitlab", "h", "https://h", "https://h/api/v4", "grp/sub group/p")
    assert place.quoted == "grp%2Fsub%20group%2Fp"


@pytest.mark.parametrize(("kind", "url"), [("github", "git@github.com:r.git"), ("gitlab", "https://gitlab.com/p")])
def test_an_address_without_an_owner_is_refused(kind: str, url: str) -> None:
    found = address.parse(url)
    assert found is not None
    with pytest.raises(Unavailable) as caught:
        address.place(kind, found)
    assert caught.value.code == "FORGE_ADDRESS"


@pytest.mark.parametrize(
    "url", ["git.corp.test", "ssh://git.corp.test", "https://", "https://me:pw@h", "https://h/?a=b"]
)
def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        address.checked_url(url)
    assert caught.value.code == "FORGE_URL"


async def test_c72_rewritten_addresses_are_taken_as_git_takes_them(repo: Path, git: Git) -> None:
    git(repo, "remote", "set-url", "origin", "work:o/r.git")
    git(repo, "config", "--global", "url.https://ghe.corp.test/.insteadOf", "work:")
    assert await remotes.url_of(await discover(repo), "origin") == "https://ghe.corp.test/o/r.git"


async def test_c68_a_fork_proposes_to_upstream_of_the_same_host(repo: Path, git: Git) -> None:
    git(repo, "remote", "set-url", "origin", "git@github.com:me/r.git")
    there = await discover(repo)
    assert await remotes.base_of(there, "origin") == "origin"
    git(repo, "remote", "add", "upstream", "https://example.org/team/r.git")
    assert await remotes.base_of(there, "origin") == "origin"
    git(repo, "remote", "set-url", "upstream", "https://github.com/team/r.git")
    assert await remotes.base_of(there, "origin") == "upstream"


async def test_c68_what_the_person_chose_with_gh_counts(repo: Path, git: Git) -> None:
    git(repo, "remote", "set-url", "origin", "git@github.com:me/r.git")
    git(repo, "remote", "add", "upstream", "https://github.com/team/r.git")
    git(repo, "config", "remote.origin.gh-resolved", "base")
    assert await remotes.base_of(await discover(repo), "origin") == "origin"


@pytest.mark.parametrize("path", ["../other.git", "/srv/other.git", "file:///srv/other.git", "~/other.git"])
async def test_a_folder_named_upstream_takes_no_changes(repo: Path, git: Git, *, path: str) -> None:
    git(repo, "remote", "set-url", "origin", "../origin.git")
    git(repo, "remote", "add", "upstream", path)
    assert await remotes.base_of(await discover(repo), "origin") == "origin"


async def test_c68_the_base_of_a_fork_comes_from_upstream(
    repo: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    git(tmp_path, "clone", "-q", "--bare", str(tmp_path / "origin.git"), "team.git")
    git(repo, "commit", "-q", "--allow-empty", "-m", "theirs")
    git(repo, "push", "-q", str(tmp_path / "team.git"), "main")

    async def sign_in(_: str) -> tuple[str, str]:
        return "robot", TOKEN

    sign_ins.keep(sign_in)
    with GitHttp(tmp_path) as server:
        git(repo, "remote", "set-url", "origin", f"{server.url}/origin.git")
        git(repo, "remote", "add", "upstream", f"{server.url}/team.git")
        assert await bases.fetch(await discover(repo), "main") == git(repo, "rev-parse", "main")
