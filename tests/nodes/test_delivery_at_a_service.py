"""Build to cleanup with a change at a hosting service: git over http with a token, the change by the service's API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.delivery import MergeReport, PullRequestReport
from beadmill.forges import credentials
from beadmill.forges.hosted import HostedForge
from beadmill.git import credentials as sign_ins
from beadmill.nodes.pull_request import PullRequestNode
from beadmill.operations.outside import Outside
from beadmill.store import tables
from tests.conftest import Git
from tests.forges.fakes import gitea, github, gitlab
from tests.forges.fakes.gogs import GitHttp
from tests.forges.fakes.hub import TOKEN, Hub
from tests.forges.worlds import HOSTED, WORLDS, named
from tests.nodes.exec_bench import TESTS, Bench, chain, writes
from tests.nodes.test_exec_delivery import REWORK, equipped, final
from tests.nodes.test_replan_build import ports_of

BACK = [*REWORK, ("pull_request", "checks_failed", "build")]
WHOLE = chain("build", "verify", "integrate", "pull_request", "cleanup", rework=BACK).replace(
    "edges:\n", "edges:\n  - {from: pull_request, outcome: closed, to: cleanup}\n"
)
ONLY = {name: pytest.mark.parametrize("at", named([name]), indirect=True) for name in HOSTED}


@dataclass
class At:
    """A service that serves the bench's origin."""

    name: str
    hub: Hub
    bench: Bench

    @property
    def forge(self) -> HostedForge:
        return HOSTED[self.name][1](self.bench.repository, url=self.hub.url)

    async def look(self) -> int:
        return await Outside(ports_of(self.bench), lambda _work: self.forge).look()


@pytest.fixture(params=named(HOSTED))
def at(
    request: pytest.FixtureRequest, tmp_path: Path, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> Iterator[At]:
    folder = tmp_path / "served" / "team"
    folder.mkdir(parents=True)
    (folder / "sample.git").symlink_to(tmp_path / "origin.git")
    hub = HOSTED[request.param][0](tmp_path / "origin.git")
    hub.start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    bench = equipped(tmp_path, repo)
    with GitHttp(folder.parent) as server:
        for url in (hub.url, server.url):
            monkeypatch.setenv(credentials.variable(url.removeprefix("http://")), TOKEN)
        sign_ins.keep(credentials.Tokens().for_git)
        git(repo, "remote", "set-url", "origin", f"{server.url}/team/sample.git")
        made = At(request.param, hub, bench)
        outside = {**bench.outside, "forge": lambda _work: made.forge}
        parts = {"trees": bench.trees, "briefs": bench.parts["briefs"], "changes": bench.changes}
        bench.nodes["pull_request"] = PullRequestNode(**parts, **outside)
        yield made
        hub.stop()
    if hub.problems:
        pytest.fail("\n".join(hub.problems), pytrace=False)


def fails(at: At, check: str) -> None:
    """A check of the forge has ended badly."""
    told = {
        "gitea": {"context": check, "status": "failure", "target_url": ""},
        "github": {
            "name": check,
            "status": "completed",
            "conclusion": "failure",
            "html_url": "https://ci.example.org/1",
        },
        "gitlab": {"name": check, "status": "failed", "target_url": ""},
    }
    at.hub.statuses.append(told[at.name])


def says(at: At, author: str, body: str) -> None:
    """Somebody comments on the change."""
    make = {"gitea": gitea.note, "github": github.note, "gitlab": gitlab.note}[at.name]
    at.hub.changes[-1].notes.append(make(7, author, body))


async def test_a_change_is_delivered_reworked_after_a_comment_and_merged(at: At) -> None:
    """The page's promise on the way: the comment becomes a bead, and is asked about once."""
    bench = at.bench
    bench.on("coding", *bench.desk.says["coding"], writes({"tests/test_more.py": TESTS.replace("Greet", "More")}))
    bench.on("final_test", final(), final({"tests/test_flow.py": "import unittest\n"}))
    await bench.start(WHOLE)
    async with bench.daemon():
        await bench.gate()
        says(at, "ada", "Please test more names.\nAnd 中文.")
        assert await at.look() == 1
        await bench.until(lambda: any("merge-2" in gate["id"] for gate in bench.gates()))
        assert [one["body"] for one in bench.gates()[0]["detail"]["news"]["remarks"]] == [
            "Please test more names.\nAnd 中文."
        ]
        assert await at.look() == 0
        await bench.answer("rework")
        await bench.until(lambda: any("pull_request.2" in gate["id"] for gate in bench.gates()))
        assert await at.look() == 0
        await bench.answer("merge")
        await bench.until(lambda: bench.run_state() != "active")
    report = bench.last(PullRequestReport)
    assert (bench.run_state(), bench.last(MergeReport).disposition, report.number) == ("completed", "merged", 1)
    assert "ada wrote:\n> Please test more names.\n> And 中文." in bench.last(Beads).beads[-1].description
    assert at.hub.changes[0].state == "merged"
    assert "## Requirements" in at.hub.changes[0].body


@ONLY["github"]
async def test_failing_checks_of_the_forge_become_a_proposed_rework(at: At) -> None:
    bench = at.bench
    await bench.start(WHOLE)
    async with bench.daemon():
        await bench.gate()
        fails(at, "unit tests")
        assert await at.look() == 1
        await bench.until(lambda: any("merge-2" in gate["id"] for gate in bench.gates()))
    (gate,) = bench.gates()
    assert (gate["choices"][0], gate["title"].partition(" #")[0]) == ("rework", "Checks fail on")
    assert ["unit tests" in one for one in gate["detail"]["news"]["failed"]] == [True]


@ONLY["gitea"]
async def test_c67_a_change_that_a_person_closed_stays_closed(at: At) -> None:
    bench = at.bench
    await bench.start(WHOLE)
    async with bench.daemon():
        await bench.gate()
        at.hub.changes[0].state = "closed"
        assert await at.look() == 1
        await bench.until(lambda: bench.run_state() != "active")
    actors = bench.rows(sa.select(tables.decisions.c.actor, tables.decisions.c.choice))
    assert (bench.last(MergeReport).disposition, [tuple(row) for row in actors]) == (
        "closed_unmerged", [("system:beadmill", "close")],
    )  # fmt: skip
    assert [change.state for change in at.hub.changes] == ["closed"]


@ONLY["github"]
async def test_c70_a_merge_queue_is_waited_for_before_the_run_is_done(at: At) -> None:
    bench, hub = at.bench, at.hub
    assert isinstance(hub, github.GitHubHub)
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


@ONLY["github"]
async def test_c73_a_token_that_expires_between_push_and_change_costs_no_work(at: At) -> None:
    bench, hub = at.bench, at.hub
    hub.next("POST", "/pulls$", hub.refused(401, "Bad credentials"))
    await bench.start(WHOLE)
    async with bench.daemon():
        gate = await bench.gate()
        assert (gate["kind"], gate["detail"]["code"]) == ("blocked", "FORGE_AUTH")
        await bench.answer("retry")
        await bench.until(lambda: [g["kind"] for g in bench.gates()] == ["merge"])
    assert (len(bench.desk.briefs("coding")), len(bench.desk.briefs("review")), len(hub.changes)) == (1, 1, 1)


async def test_a_change_is_delivered_at_gogs_by_plain_git_alone(
    tmp_path: Path, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = equipped(tmp_path, repo)
    with WORLDS["gogs"](repo, git, monkeypatch) as world:
        outside = {**bench.outside, "forge": lambda _work: world.forge}
        parts = {"trees": bench.trees, "briefs": bench.parts["briefs"], "changes": bench.changes}
        bench.nodes["pull_request"] = PullRequestNode(**parts, **outside)
        await bench.start(WHOLE)
        async with bench.daemon():
            await bench.answer("merge")
            await bench.until(lambda: bench.run_state() != "active")
    merge = bench.last(MergeReport)
    assert (bench.run_state(), merge.disposition, merge.sha) == ("completed", "merged", world.base())
