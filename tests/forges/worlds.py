"""Every forge with an origin that a test can push to by plain git."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from beadmill.forges import credentials
from beadmill.forges._http import Nature
from beadmill.forges.contract import METHODS, Forge
from beadmill.forges.gitea import GiteaForge
from beadmill.forges.github import GitHubForge
from beadmill.forges.gitlab import GitLabForge
from beadmill.forges.gogs import GogsForge
from beadmill.forges.hosted import HostedForge
from beadmill.forges.local import LocalForge
from beadmill.forges.pushed import DirectForge
from beadmill.git import credentials as sign_ins
from tests.forges.fakes.gitea import GiteaHub
from tests.forges.fakes.github import GitHubHub
from tests.forges.fakes.gitlab import GitLabHub
from tests.forges.fakes.gogs import GitHttp, GogsHub
from tests.forges.fakes.hub import TOKEN, Hub

Git = Callable[..., str]


@dataclass
class World:
    """``checkout`` is the user's, branches come from a colleague's clone. ``waited`` is what was waited for, in seconds."""

    forge: Forge
    checkout: Path
    git: Git
    methods: tuple[str, ...] = METHODS
    waited: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._clone = self.checkout.parent / "colleague"
        self.git(self.checkout.parent, "clone", "-q", str(self.checkout.parent / "origin.git"), "colleague")

    def push(self, branch: str, files: Mapping[str, str], *, onto: str = "main", to: str = "origin") -> str:
        self.git(self._clone, "fetch", "-q", "origin")
        self.git(self._clone, "switch", "-qC", branch, f"origin/{onto}")
        for name, text in files.items():
            (self._clone / name).write_text(text)
            self.git(self._clone, "add", name)
            self.git(self._clone, "commit", "-qm", f"add {name}")
        self.git(self._clone, "push", "-qf", to, f"HEAD:refs/heads/{branch}")
        return self.git(self._clone, "rev-parse", "HEAD")

    def base(self) -> str:
        return self.git(self.checkout.parent / "origin.git", "rev-parse", "main")


@dataclass
class Hosted(World):
    hub: Hub = field(kw_only=True)


NOW = 1_800_000_000.0


def variable(hub: Hub) -> str:
    return credentials.variable(hub.url.removeprefix("http://"))


@contextmanager
def local(repo: Path, git: Git, _patch: pytest.MonkeyPatch) -> Iterator[World]:
    yield World(LocalForge(repo), repo, git)


@contextmanager
def direct(repo: Path, git: Git, _patch: pytest.MonkeyPatch) -> Iterator[World]:
    yield World(DirectForge(repo), repo, git)


@contextmanager
def hosted(
    made: tuple[type[Hub], type[HostedForge]], repo: Path, git: Git, patch: pytest.MonkeyPatch
) -> Iterator[Hosted]:
    """The hub refuses what the service's API does not know; a test that asked for it fails at its end."""
    hub = made[0](repo.parent / "origin.git")
    hub.start()
    patch.setenv(variable(hub), TOKEN)
    patch.setenv("no_proxy", "127.0.0.1")
    git(repo, "remote", "set-url", "origin", f"{hub.url}/{hub.project}.git")
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    forge = made[1](repo, nature=Nature(pause, lambda: NOW, lambda: 0.0))
    try:
        yield Hosted(forge, repo, git, METHODS if made[0] is not GitLabHub else METHODS[:2], waited, hub=hub)
    finally:
        hub.stop()
    leaks = [f"the token is in {a.method} {a.path}" for a in hub.asked if TOKEN in f"{a.path}{a.query}{a.body}"]
    if wrong := sorted({*hub.problems, *leaks}):
        pytest.fail("\n".join(wrong), pytrace=False)


@contextmanager
def gogs(repo: Path, git: Git, patch: pytest.MonkeyPatch) -> Iterator[World]:
    """git goes over http with the token, as it does for everybody."""
    folder = repo.parent / "served" / "team"
    folder.mkdir(parents=True)
    (folder / "sample.git").symlink_to(repo.parent / "origin.git")
    hub = GogsHub(repo.parent / "origin.git")
    with GitHttp(folder.parent, hub=hub) as server:
        tokens = credentials.Tokens()
        patch.setenv(credentials.variable(server.url.removeprefix("http://")), TOKEN)
        patch.setenv("no_proxy", "127.0.0.1")
        sign_ins.keep(tokens.for_git)
        git(repo, "remote", "set-url", "origin", f"{server.url}/team/sample.git")
        yield World(GogsForge(repo, tokens=tokens, nature=Nature()), repo, git)
        assert not hub.problems, hub.problems


HOSTED: Mapping[str, tuple[type[Hub], type[HostedForge]]] = {
    "gitea": (GiteaHub, GiteaForge),
    "github": (GitHubHub, GitHubForge),
    "gitlab": (GitLabHub, GitLabForge),
}


def named(names: Iterable[str]) -> list[ParameterSet]:
    """As parameters; GitHub's with the mark that brings its description."""
    marks = {"github": [pytest.mark.github_api]}
    return [pytest.param(name, marks=marks.get(name, [])) for name in sorted(names)]


WORLDS: Mapping[str, Callable[[Path, Git, pytest.MonkeyPatch], AbstractContextManager[World]]] = {
    "direct": direct,
    "gogs": gogs,
    "local": local,
    **{name: partial(hosted, made) for name, made in HOSTED.items()},
}
