"""An agent without a sandbox plants what git would run for Beadmill. Nothing of it runs, whatever follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beadmill.git import trust
from beadmill.git.run import discover
from tests.conftest import Git
from tests.deliver.bad_world import WORK, BadWorld, marker


@pytest.fixture
def world(tmp_path: Path, repo: Path) -> Iterator[BadWorld]:
    trust.keep(tmp_path / "trust")
    yield BadWorld.at(tmp_path, repo)
    trust.keep(None)


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A program that leaves a mark beside itself, whatever it is called with."""
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\ncat >/dev/null 2>&1\nexit 0\n")
    program.chmod(0o755)
    return program


# Switched off for good: the work goes on and lands.
OFF = {
    "fsmonitor": "git config core.fsmonitor EVIL",
    "hooks path": "mkdir h; for n in pre-commit post-checkout reference-transaction post-index-change; do cp EVIL h/$n; "
    "done; git config core.hooksPath $PWD/h; rm -rf h.keep",
    "hooks": "for n in pre-commit post-checkout reference-transaction post-index-change; do cp EVIL REPO/.git/hooks/$n; done",
    "editor and pager": "git config core.editor EVIL; git config core.pager EVIL; git config sequence.editor EVIL",
    "alias": "git config alias.status '!EVIL'; git config alias.update-ref '!EVIL'",
    "external diff": "git config diff.external EVIL; git config diff.evil.command EVIL; git config diff.evil.textconv EVIL;"
    "echo '*.py diff=evil' >> REPO/.git/info/attributes",
    "work tree elsewhere": "git config core.worktree REPO",
    "git file elsewhere": "echo 'gitdir: REPO/.git' > .git",
    "git file gone": "rm .git",
    "own repository": "rm .git; git init -q .; git config core.fsmonitor EVIL",
    "record elsewhere": "D=$(git rev-parse --absolute-git-dir); echo REPO/elsewhere > $D/commondir; echo /nowhere > $D/gitdir",
    "index lock": "touch $(git rev-parse --absolute-git-dir)/index.lock",
    "broken index": "echo rubbish > $(git rev-parse --absolute-git-dir)/index",
    "grafts": "git rev-parse HEAD > REPO/.git/info/grafts",
    "replaced commit": "git replace -f HEAD $(git commit-tree -m x $(git write-tree))",
    "alternates": "mkdir -p ../../alt; echo $(cd ../..; pwd)/alt > REPO/.git/objects/info/alternates",
    "show signatures": "git config log.showSignature true; git config user.signingKey x",
    "ext protocol": "git config submodule.recurse true; git config diff.submodule log",
}


@pytest.mark.parametrize("trick", OFF)
async def test_what_is_switched_off_for_good_does_not_hinder_the_work(
    world: BadWorld, evil: Path, git: Git, *, trick: str
) -> None:
    script = OFF[trick].replace("EVIL", str(evil)).replace("REPO", str(world.repository))
    world.plays("coding", {"shell": script}, *WORK, marker())
    await world.goes()
    assert not evil.with_name("ran").exists()
    assert (world.run_state(), world.tries()) == ("completed", ["done"])
    git(world.repository, "config", "--unset-all", "core.worktree") if "work tree" in trick else None
    assert "greet.py" in git(world.repository, "ls-tree", "--name-only", "beadmill/APP-1").split("\n")
    assert (world.tree / ".git").read_text() == f"gitdir: {world.repository}/.git/worktrees/tree\n"


ATTRIBUTES = "echo '* filter=evil merge=evil' >> REPO/.git/info/attributes; echo '* filter=evil' > .gitattributes;"
# Could run a program in ways that cannot be switched off without harm: no git command runs until a person looks.
STOPS = {
    "filter": f"{ATTRIBUTES} git config filter.evil.clean EVIL; git config filter.evil.smudge EVIL",
    "process filter": f"{ATTRIBUTES} git config filter.evil.process EVIL",
    "merge driver": f"{ATTRIBUTES} git config merge.evil.driver EVIL",
    "ssh command": "git config core.sshCommand EVIL; git config remote.origin.url ssh://127.0.0.1:9/x.git",
    "signing program": "git config gpg.program EVIL; git config commit.gpgSign true",
    "credential helper": "git config credential.helper '!EVIL'",
    "upload pack": "git config remote.origin.uploadpack EVIL; git config remote.origin.receivepack EVIL",
    "rewritten address": "git config url.ext::EVIL.insteadOf REPO; git config protocol.ext.allow always",
    "alternate refs": "git config core.alternateRefsCommand EVIL",
    "include": f"{ATTRIBUTES} printf '[filter \"evil\"]\\n\\tclean = EVIL\\n' > inc; git config include.path $PWD/inc",
    "worktree settings": f"{ATTRIBUTES} git config extensions.worktreeConfig true;"
    "git config --worktree filter.evil.clean EVIL",
}


@pytest.mark.parametrize("trick", STOPS)
async def test_what_could_run_a_program_stops_the_try_until_it_is_taken_back(
    world: BadWorld, evil: Path, git: Git, *, trick: str
) -> None:
    before = (world.repository / ".git" / "config").read_text()
    script = STOPS[trick].replace("EVIL", str(evil)).replace("REPO", str(world.repository))
    world.plays("coding", {"shell": script}, *WORK, marker())
    await world.begins()
    async with world.daemon():
        await world.ends()
        assert world.blocked() == ("REPOSITORY_SETTINGS_CHANGED", ("retry",))
        (world.repository / ".git" / "config").write_text(before)
        world.plays("coding", *WORK, marker())
        await world.answer("retry")
        await world.until(lambda: world.run_state() == "completed")
    assert not evil.with_name("ran").exists()
    assert "greet.py" in git(world.repository, "ls-tree", "--name-only", "beadmill/APP-1").split("\n")


async def test_settings_that_a_person_vouches_for_are_used(world: BadWorld, git: Git) -> None:
    world.plays("coding", {"shell": "git config credential.helper store"}, *WORK, marker())
    await world.begins()
    async with world.daemon():
        await world.ends()
        await (await discover(world.repository)).trust()
        await world.answer("retry")
        await world.until(lambda: world.run_state() == "completed")
    assert git(world.repository, "config", "credential.helper") == "store"


async def test_a_repository_in_the_place_of_a_submodule_runs_nothing(world: BadWorld, evil: Path, git: Git) -> None:
    sha = git(world.repository, "rev-parse", "HEAD")
    git(world.repository, "update-index", "--add", "--cacheinfo", f"160000,{sha},sub")
    git(world.repository, "commit", "-qm", "a submodule")
    git(world.repository, "push", "-q")
    script = (
        f"cd sub; git init -q .; echo a > a; git add a; git commit -qm a; git config filter.evil.clean {evil};"
        f"git config core.fsmonitor {evil}; echo '* filter=evil' > .git/info/attributes; sleep 1.1; touch a; echo b > a"
    )
    world.plays("coding", {"shell": script}, *WORK, marker())
    await world.goes(attempts=1)
    assert not evil.with_name("ran").exists()
