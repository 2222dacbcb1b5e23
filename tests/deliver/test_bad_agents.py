"""Every bad agent ends in a state of its own: nothing is lost, nothing runs on, and there is a way on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from beadmill.artifacts.delivery import BeadEvidence
from beadmill.store import tables
from beadmill.store.journal import visits
from tests.conftest import Git
from tests.deliver.bad_world import KEY, WORK, BadWorld, Step, marker
from tests.nodes.exec_bench import ME

ME_GIT = "git -c user.name=agent -c user.email=agent@example.org"  # an agent has no HOME of the user's, so no name
HALF: Step = {"write": {"path": "half.py", "content": "x"}}
BRANCH = f"beadmill/{KEY}"
UNDO = f"refs/beadmill/undo/{KEY}"


@pytest.fixture
def world(tmp_path: Path, repo: Path) -> BadWorld:
    return BadWorld.at(tmp_path, repo)


def kept(world: BadWorld, git: Git) -> set[str]:
    """Every file name that some undo ref holds."""
    refs = git(world.repository, "for-each-ref", "--format=%(refname)", UNDO).splitlines()
    return {name for ref in refs for name in git(world.repository, "ls-tree", "-r", "--name-only", ref).splitlines()}


def untouched(world: BadWorld, git: Git) -> bool:
    """Branch and tree are where the try began, and nothing of ours runs."""
    at_base = git(world.repository, "rev-parse", BRANCH) == git(world.repository, "rev-parse", "main")
    return at_base and git(world.tree, "status", "--porcelain") == "" and world.running() == []


async def test_one_that_hangs_is_stopped_its_half_work_kept_and_a_person_asked(world: BadWorld, git: Git) -> None:
    world.plays("coding", HALF, {"hang": True})
    await world.goes(attempts=1, idle_s=10)
    assert world.blocked() == ("BEAD_RETRY_BUDGET_EXHAUSTED", ("retry",))
    assert (world.status(), world.tries()) == ("blocked_error", ["failed"])
    assert "said nothing for too long (BEAD_ITERATION_TIMEOUT)" in world.attempts()[0].note
    assert (untouched(world, git), "half.py" in kept(world, git)) == (True, True)


async def test_one_that_floods_does_its_work_and_its_log_stays_small(world: BadWorld) -> None:
    flood = "head -c 40000000 /dev/zero | tr '\\0' x > /proc/$PPID/fd/1; echo > /proc/$PPID/fd/1"
    world.plays("coding", {"shell": flood}, *WORK, marker())
    await world.goes()
    size = sum(path.stat().st_size for path in (world.home / "sessions").rglob("*") if path.is_file())
    assert (world.run_state(), world.tries(), size < 20_000_000) == ("completed", ["done"], True)


async def test_children_that_one_leaves_are_ended(world: BadWorld) -> None:
    leave = "setsid sh -c 'while :; do echo x >> late.log; sleep 0.1; done' & nohup sleep 600 & sleep 0.3"
    world.plays("coding", {"shell": leave}, *WORK, marker())
    await world.goes()
    assert (world.run_state(), world.tries(), world.running()) == ("completed", ["done"], [])


async def test_c37_one_that_edits_the_checkout_stops_is_named_and_overwrites_nothing(world: BadWorld, git: Git) -> None:
    (world.repository / "README.md").write_text("a person's own words\n")
    edit = f"echo scribbled > {world.repository}/README.md; echo new > {world.repository}/new.txt"
    world.plays("coding", {"shell": edit}, *WORK, marker(), text="try 1")
    await world.begins()
    async with world.daemon():
        await world.until(lambda: world.status() == "blocked_error")
        detail = world.gates()[0]["detail"]
        assert world.blocked() == ("AGENT_ESCAPED", ("retry", "keep"))
        world.plays("coding", *WORK, marker())
        await world.answer("retry", note="Stay in the worktree.")
        await world.until(lambda: world.run_state() == "completed")
    said = ["in the checkout, the file 'README.md' changed", "in the checkout, the file 'new.txt' changed"]
    assert detail["details"]["touched"] == said
    restore = f"git -C {world.repository} restore --source=refs/beadmill/checkout/{KEY} -- README.md"
    assert detail["details"]["undo"] == [restore]
    assert (world.repository / "README.md").read_text() == "scribbled\n"
    assert git(world.repository, "show", f"refs/beadmill/checkout/{KEY}:README.md") == "scribbled"
    assert world.tries() == ["failed", "done"]


async def test_c36_a_reset_of_the_checkout_is_noticed_and_the_uncommitted_work_is_kept(
    world: BadWorld, git: Git
) -> None:
    (world.repository / "README.md").write_text("hours of work\n")
    world.plays("coding", {"shell": f"git -C {world.repository} reset -q --hard"}, *WORK, marker())
    await world.begins()
    async with world.daemon():
        await world.until(lambda: world.status() == "blocked_error")
        detail = world.gates()[0]["detail"]
    assert world.blocked()[0] == "AGENT_ESCAPED"
    assert "in the checkout, the file 'README.md' changed" in detail["details"]["touched"]
    assert git(world.repository, "show", f"refs/beadmill/checkout/{KEY}:README.md") == "hours of work"


async def test_c64_words_of_a_limit_in_what_a_command_prints_are_no_limit(world: BadWorld) -> None:
    world.plays("coding", {"shell": "echo rate limit exceeded 429"}, *WORK, marker())
    await world.goes()
    assert (world.run_state(), world.tries()) == ("completed", ["done"])


async def test_the_persons_words_are_back_after_the_hint(world: BadWorld, git: Git) -> None:
    (world.repository / "README.md").write_text("a person's own words\n")
    world.plays("coding", {"shell": f"echo scribbled > {world.repository}/README.md"}, *WORK, marker())
    await world.begins()
    async with world.daemon():
        await world.ends()
        (undo,) = world.gates()[0]["detail"]["details"]["undo"]
        git(world.repository, *undo.split()[3:])
        await world.answer("keep")
        await world.until(lambda: world.run_state() == "completed")
    assert (world.repository / "README.md").read_text() == "a person's own words\n"
    assert world.tries() == ["done"]


async def test_c40_one_that_moves_the_users_branches_is_named_with_the_way_back(world: BadWorld, git: Git) -> None:
    git(world.repository, "branch", "feature")
    sha = git(world.repository, "rev-parse", "feature")
    move = f"{ME_GIT} commit -qm x --allow-empty; git branch -f feature HEAD; git push -q origin HEAD:main"
    world.plays("coding", {"shell": move}, *WORK, marker())
    await world.goes()
    details = world.gates()[0]["detail"]["details"]
    assert world.blocked()[0] == "AGENT_ESCAPED"
    assert details["touched"] == [
        "in the checkout, the ref refs/heads/feature changed",
        "in the checkout, the ref refs/remotes/origin/main changed",
    ]
    assert f"git -C {world.repository} update-ref refs/heads/feature {sha}" in details["undo"]


async def test_a_person_who_works_in_the_checkout_meanwhile_stops_nothing(world: BadWorld) -> None:
    move = (
        f"cd '{world.repository.parent}' && echo mine > checkout/README.md"  # a person's edit: no call names the place
    )
    world.plays("coding", {"shell": move}, *WORK, marker())
    await world.goes()
    assert (world.run_state(), world.tries()) == ("completed", ["done"])


async def test_c40_commits_of_its_own_become_the_one_commit_of_the_bead(world: BadWorld, git: Git) -> None:
    commit = f"git add -A; {ME_GIT} commit -qm mine; {ME_GIT} commit -q --amend -m again; git checkout -q --detach"
    world.plays("coding", *WORK, {"shell": commit}, marker())
    await world.goes()
    assert (world.run_state(), world.tries()) == ("completed", ["done"])
    assert git(world.repository, "log", "--format=%s", f"main..{BRANCH}") == "bead(greet): Add greet"
    assert git(world.tree, "symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"


@pytest.mark.parametrize(
    "harm",
    [
        "cd ..; rm -rf tree",
        "D=$(git rev-parse --absolute-git-dir); cd ..; rm -rf tree $D",
        f"git checkout -q --detach; git branch -D {BRANCH}; rm -rf .git *",
    ],
)
async def test_c24_one_that_deletes_its_tree_loses_the_try_not_the_ticket(
    world: BadWorld, git: Git, *, harm: str
) -> None:
    world.plays("coding", {"shell": harm}, marker())
    world.plays("coding", *WORK, marker(), subject="try 2")
    await world.goes()
    assert (world.run_state(), world.tries()) == ("completed", ["failed", "done"])
    assert git(world.tree, "status", "--porcelain") == ""
    assert "greet.py" in git(world.repository, "ls-tree", "--name-only", BRANCH).split("\n")


async def test_one_that_prints_rubbish_and_dies_can_be_continued(world: BadWorld, git: Git) -> None:
    world.plays("coding", HALF, {"shell": 'printf \'{"type": "resu\\377\' > /proc/$PPID/fd/1; kill -9 $PPID'})
    await world.begins()
    async with world.daemon():
        await world.ends()
        assert (world.blocked(), world.status()) == (("AGENT_FAILED", ("retry", "continue")), "blocked_error")
        assert ((world.tree / "half.py").exists(), world.tries(), world.running()) == (True, ["open"], [])
        world.plays("coding", *WORK, marker())
        await world.answer("continue")
        await world.until(lambda: world.run_state() == "completed")
    assert world.tries() == ["done"]


async def test_a_reply_that_cannot_be_read_fails_the_try_after_one_re_ask(world: BadWorld, git: Git) -> None:
    world.plays("coding|repair", *WORK, {"reply": "\u0000<BEAD_STATUS>{not: [yaml"})
    await world.goes(attempts=1)
    assert world.blocked() == ("BEAD_RETRY_BUDGET_EXHAUSTED", ("retry",))
    assert "BEAD_AGENT_RESPONSE_INVALID" in world.attempts()[0].note
    assert (untouched(world, git), "greet.py" in kept(world, git)) == (True, True)


async def test_c62_c63_an_hours_limit_parks_spends_nothing_and_can_be_ended_by_a_person(world: BadWorld) -> None:
    world.plays("coding", HALF, {"limit": {"seconds": 3600, "message": "5 h limit"}})
    await world.begins()
    v, s = tables.visits, tables.sessions
    async with world.daemon():
        await world.until(lambda: bool(world.rows(sa.select(v.c.id).where(v.c.wake_at.is_not(None)))))
        assert (world.tries(), world.gates(), world.status(), world.running()) == (["open"], [], "coding", [])
        assert (world.tree / "half.py").exists()
        world.plays("coding", *WORK, marker())
        (woken,) = await world.store.write(lambda tx: visits.wake_now(tx, "r1", actor=ME))
        assert world.dispatcher is not None
        world.dispatcher.ring()
        await world.until(lambda: world.run_state() == "completed")
    assert (woken, world.tries()) == ("r1/build.1", ["done"])
    assert sum(row.seconds or 0 for row in world.rows(sa.select(s.c.seconds))) < 600


async def test_a_file_name_that_is_no_text_is_committed_and_shown(world: BadWorld, git: Git) -> None:
    world.plays("coding", {"shell": "printf x > \"$(printf 'caf\\351.txt')\""}, *WORK, marker())
    await world.goes()
    assert (world.run_state(), world.last(BeadEvidence).paths[0]) == ("completed", r"caf\xe9.txt")
    assert world.attempts()[0].proof["paths"][0] == r"caf\xe9.txt"
    assert git(world.repository, "ls-tree", "--name-only", BRANCH).split("\n")[2] == r'"caf\351.txt"'


async def test_one_that_loses_its_login_blocks_with_what_to_do_and_goes_on_after_a_retry(world: BadWorld) -> None:
    world.plays("coding", HALF, {"fail": {"why": "auth", "message": "Not signed in"}})
    await world.begins()
    async with world.daemon():
        await world.ends()
        detail = world.gates()[0]["detail"]
        assert (world.blocked(), world.status()) == (("AGENT_SIGNED_OUT", ("retry",)), "blocked_error")
        assert (detail["next"], detail["details"]) == ("sign in to the agent, then retry", {"bead": "greet"})
        world.plays("coding", *WORK, marker())
        await world.answer("retry")
        await world.until(lambda: world.run_state() == "completed")
    assert json.dumps(world.tries()) == '["failed", "done"]'
