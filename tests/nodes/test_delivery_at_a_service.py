"""Build to cleanup with a change at a hosting service: git over http with a token, the change by the service's API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beadmill.artifacts.delivery import MergeReport, PullRequestReport
from beadmill.forges import credentials
from beadmill.forges.github import GitHubForge
from beadmill.git import credentials as sign_ins
from beadmill.nodes.pull_request import PullRequestNode
from tests.conftest import Git
from tests.forges.fakes.github import GitHubHub
from tests.forges.fakes.gogs import GitHttp
from tests.forges.fakes.hub import TOKEN
from tests.nodes.exec_bench import Bench
from tests.nodes.test_exec_delivery import WHOLE, equipped

pytestmark = pytest.mark.github_api


@pytest.fixture
def hub(tmp_path: Path, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubHub]:
    folder = tmp_path / "served" / "team"
    folder.mkdir(parents=True)
    (folder / "sample.git").symlink_to(tmp_path / "origin.git")
    made = GitHubHub(tmp_path / "origin.git")
    made.start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with GitHttp(folder.parent) as server:
        for url in (made.url, server.url):
            monkeypatch.setenv(credentials.variable(url.removeprefix("http://")), TOKEN)
        sign_ins.keep(credentials.Tokens().for_git)
        git(repo, "remote", "add", "served", f"{server.url}/team/sample.git")
        yield made
        made.stop()
    if made.problems:
        pytest.fail("\n".join(made.problems), pytrace=False)


@pytest.fixture
def bench(tmp_path: Path, repo: Path, git: Git, hub: GitHubHub) -> Bench:
    made = equipped(tmp_path, repo)
    git(repo, "remote", "set-url", "origin", git(repo, "remote", "get-url", "served"))
    outside = {**made.outside, "forge": lambda _work: GitHubForge(repo, url=hub.url)}
    briefs = made.parts["briefs"]
    made.nodes["pull_request"] = PullRequestNode(trees=made.trees, briefs=briefs, changes=made.changes, **outside)
    return made


async def test_c70_a_merge_queue_is_waited_for_before_the_run_is_done(bench: Bench, hub: GitHubHub) -> None:
    hub.queue = True
    await bench.start(WHOLE)
    async with bench.daemon():
        await bench.answer("merge")
        await bench.until(lambda: any("merge-2" in gate["id"] for gate in bench.gates()))
        assert "merge queue" in bench.gates()[0]["detail"]["problem"]
        hub.run_queue()
        await bench.answer("merge")
        await bench.until(lambda: bench.run_state() != "active")
    merge, report = bench.last(MergeReport), bench.last(PullRequestReport)
    assert (bench.run_state(), merge.disposition, merge.sha) == ("completed", "merged", hub.changes[0].merge_sha)
    assert (report.forge, report.url, report.state) == ("github", f"{hub.url}/team/sample/pull/1", "draft")


async def test_c73_a_token_that_expires_between_push_and_change_costs_no_work(bench: Bench, hub: GitHubHub) -> None:
    hub.next("POST", "/pulls$", hub.refused(401, "Bad credentials"))
    await bench.start(WHOLE)
    async with bench.daemon():
        gate = await bench.gate()
        assert (gate["kind"], gate["detail"]["code"]) == ("blocked", "FORGE_AUTH")
        await bench.answer("retry")
        await bench.until(lambda: [g["kind"] for g in bench.gates()] == ["merge"])
    assert (len(bench.desk.briefs("coding")), len(bench.desk.briefs("review")), len(hub.changes)) == (1, 1, 1)
