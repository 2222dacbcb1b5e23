"""Freeing disk space: nothing goes that is not kept elsewhere, and each thing is looked at again right before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from house_for_tests import Starter, until

from beadmill import crashpoints
from beadmill.domain.values import Actor
from beadmill.errors import Conflict, NotFound
from beadmill.operations import clean, events, runs, sessions, tickets, undo, views
from beadmill.operations.ports import Ports
from beadmill.store import tables as t
from beadmill.workspaces import lanes
from beadmill.workspaces.tree import Tree

Git = Callable[..., str]


async def tree_of(ports: Ports, ticket: views.TicketView) -> Tree:
    assert ticket.current is not None
    work = ticket.current.work
    return await ports.trees.open(work["repository"], work["workspace"], branch=work["branch"], base="main")


def folder(tree: Tree) -> Path:
    return Path(tree.path)


@pytest.fixture
async def tree(ports: Ports, started: Starter, owner: Actor) -> Tree:
    """The worktree of a canceled ticket."""
    tree = await tree_of(ports, await started())
    await tickets.cancel(ports, "API-1", actor=owner)
    await until(ports, "API-1", lambda found: found.state == "canceled")
    return tree


async def items(ports: Ports, owner: Actor) -> dict[str, views.CleanItem]:
    return {item.id: item for item in (await clean.preview(ports, actor=owner)).items}


async def cleaned(ports: Ports, owner: Actor, *ids: str, lose: bool = False) -> list[tuple[str, bool]]:
    """As ``clean --apply`` does it: everything that is ready, or what is named."""
    found = await items(ports, owner)
    wanted = {i.id: i.mark for i in found.values() if (i.id in ids if ids else i.verdict == "ready")}
    done = await clean.apply(ports, wanted, lose=lose, actor=owner)
    return [(line.id, line.removed) for line in done.lines]


@pytest.fixture
def crash() -> Iterator[Callable[[str, int], None]]:
    """Crashes at the n-th pass of a point."""

    def set_up(name: str, nth: int) -> None:
        passed = {name: 0}

        def reach(point: str) -> None:
            if point == name:
                passed[name] += 1
                if passed[name] == nth:
                    raise crashpoints.Crashed(name)

        crashpoints.on_reach = reach

    os.environ["BEADMILL_TESTING"] = "1"
    yield set_up
    crashpoints.on_reach = None
    del os.environ["BEADMILL_TESTING"]


async def test_a_preview_changes_nothing_and_says_what_each_thing_frees_and_why(
    ports: Ports, tree: Tree, owner: Actor
) -> None:
    item = (await items(ports, owner))["worktree:API-1"]
    assert (item.verdict, item.why, item.path) == ("ready", "nothing is uncommitted", tree.path)
    assert (item.size > 0, folder(tree).is_dir()) == (True, True)
    assert await undo.listing(ports, "API-1", actor=owner) == ()


async def test_what_is_ready_goes_and_a_second_time_there_is_nothing(
    ports: Ports, tree: Tree, owner: Actor, git: Git, repo: Path
) -> None:
    assert await cleaned(ports, owner) == [("worktree:API-1", True), ("workspace:API-1", True)]
    assert await items(ports, owner) == {}
    assert len(git(repo, "worktree", "list").splitlines()) == 1
    assert git(repo, "rev-parse", tree.branch) == tree.base_commit
    seen = await events.since(ports, actor=owner, topics=("ticket:API-1",))
    assert [e.data["id"] for e in seen.events if e.kind == "clean.removed"] == ["worktree:API-1", "workspace:API-1"]


async def test_uncommitted_work_is_behind_an_undo_ref_before_its_worktree_goes(
    ports: Ports, tree: Tree, owner: Actor, git: Git, repo: Path
) -> None:
    (folder(tree) / "draft.txt").write_text("half\n")
    await cleaned(ports, owner)
    (line,) = await undo.listing(ports, "API-1", actor=owner)
    assert (folder(tree).exists(), git(repo, "show", f"{line.ref}:draft.txt")) == (False, "half")


async def test_c30_unpushed_commits_stay_on_their_branch_and_the_screen_says_so(
    ports: Ports, tree: Tree, owner: Actor, git: Git, repo: Path
) -> None:
    for name in ("a", "b"):
        (folder(tree) / name).write_text("x")
        await ports.trees.commit(tree, [name], name, trailers={})
    tip = await ports.trees.head(tree)
    said = (await items(ports, owner))["worktree:API-1"].why
    await cleaned(ports, owner)
    assert said == f"nothing is uncommitted; 2 commit(s) are only on the branch {tree.branch}, which stays"
    assert git(repo, "rev-parse", tree.branch) == tip


async def test_a_cleaned_ticket_gets_its_worktree_and_branch_again(ports: Ports, tree: Tree, owner: Actor) -> None:
    (folder(tree) / "a").write_text("x")
    await ports.trees.commit(tree, ["a"], "a", trailers={})
    await cleaned(ports, owner)
    again = await tree_of(ports, await tickets.show(ports, "API-1", actor=owner))
    assert (again.branch, (Path(again.path) / "a").read_text()) == (tree.branch, "x")


async def test_c31_nothing_of_a_ticket_that_has_not_ended_goes_however_old(
    ports: Ports, started: Starter, owner: Actor
) -> None:
    tree = await tree_of(ports, await started())
    os.utime(tree.path, (0, 0))
    found = await items(ports, owner)
    assert {(i.verdict, i.why) for i in found.values()} == {("keep", "API-1 has not ended")}
    done = await clean.apply(ports, dict.fromkeys(found, ""), actor=owner)
    assert ([line.removed for line in done.lines], folder(tree).is_dir()) == ([False] * len(found), True)


async def test_a_ticket_that_goes_on_between_look_and_removal_keeps_its_worktree(
    ports: Ports, tree: Tree, owner: Actor
) -> None:
    found = await items(ports, owner)
    await runs.rerun(ports, "API-1-r1", "write", actor=owner)
    done = await clean.apply(ports, {i.id: i.mark for i in found.values()}, actor=owner)
    assert [(line.removed, line.said) for line in done.lines if line.id == "worktree:API-1"] == [
        (False, "it stays: API-1 has not ended")
    ]
    assert folder(tree).is_dir()


async def test_what_changed_between_look_and_removal_stays_and_says_so(ports: Ports, tree: Tree, owner: Actor) -> None:
    item = (await items(ports, owner))["worktree:API-1"]
    (folder(tree) / "late.txt").write_text("x")
    done = await clean.apply(ports, {item.id: item.mark}, actor=owner)
    assert [(line.removed, line.said) for line in done.lines] == [
        (False, "it stays: it changed since it was looked at")
    ]
    assert ((folder(tree) / "late.txt").exists(), done.freed) == (True, 0)


async def test_ignored_files_go_only_when_they_are_named(ports: Ports, tree: Tree, owner: Actor) -> None:
    (folder(tree) / ".gitignore").write_text(".env\n")
    (folder(tree) / ".env").write_text("mine")
    item = (await items(ports, owner))["worktree:API-1"]
    assert (item.verdict, item.loses) == ("ask", (".env (ignored by git)",))
    assert await cleaned(ports, owner, "worktree:API-1") == [("worktree:API-1", False)]
    assert await cleaned(ports, owner, "worktree:API-1", lose=True) == [("worktree:API-1", True)]


async def submodule(ports: Ports, tree: Tree, tmp_path: Path, git: Git) -> Path:
    """A committed, checked-out submodule of the worktree."""
    lib = tmp_path / "lib"
    git(tmp_path, "init", "-q", str(lib))
    (lib / "file").write_text("one\n")
    git(lib, "add", ".")
    git(lib, "commit", "-qm", "one")
    git(folder(tree), "submodule", "add", "-q", str(lib), "vendor/sub")
    git(folder(tree), "commit", "-qm", "submodule")
    return folder(tree) / "vendor" / "sub"


async def test_c07_a_clean_worktree_with_a_submodule_goes(
    ports: Ports, tree: Tree, owner: Actor, tmp_path: Path, git: Git
) -> None:
    await submodule(ports, tree, tmp_path, git)
    assert ("worktree:API-1", True) in await cleaned(ports, owner)


@pytest.mark.parametrize("what", ["untracked", "commit", "stash"])
async def test_c07_a_submodule_with_work_of_its_own_keeps_the_worktree_and_is_named(
    *, ports: Ports, tree: Tree, owner: Actor, tmp_path: Path, git: Git, what: str
) -> None:
    sub = await submodule(ports, tree, tmp_path, git)
    (sub / "file").write_text("two\n")
    done = {"commit": ("commit", "-qam", "two"), "stash": ("stash", "-q")}.get(what)
    if done:
        git(sub, *done)
    item = (await items(ports, owner))["worktree:API-1"]
    assert (item.verdict, "vendor/sub" in item.why) == ("keep", True)
    await clean.apply(ports, {item.id: item.mark}, actor=owner, lose=True)
    assert sub.is_dir()


async def test_c07_a_submodule_whose_settings_could_run_a_program_is_not_looked_into(
    ports: Ports, tree: Tree, owner: Actor, tmp_path: Path, git: Git
) -> None:
    sub = await submodule(ports, tree, tmp_path, git)
    git(sub, "config", "filter.evil.clean", f"touch {tmp_path}/ran; cat")
    (sub / ".gitattributes").write_text("* filter=evil\n")
    item = (await items(ports, owner))["worktree:API-1"]
    assert (item.verdict, "filter.evil.clean" in item.why) == ("keep", True)
    assert not (tmp_path / "ran").exists()


async def test_c32_a_worktree_replaced_by_a_link_is_never_followed(
    ports: Ports, tree: Tree, owner: Actor, repo: Path
) -> None:
    folder(tree).rename(Path(tree.workspace) / "away")
    folder(tree).symlink_to(repo)
    item = (await items(ports, owner))["worktree:API-1"]
    await clean.apply(ports, {item.id: item.mark}, actor=owner, lose=True)
    assert (item.verdict, folder(tree).is_symlink(), (repo / "README.md").exists()) == ("keep", True, True)


async def test_c32_a_git_file_that_names_the_main_repository_harms_nothing(
    ports: Ports, tree: Tree, owner: Actor, repo: Path, git: Git
) -> None:
    (folder(tree) / ".git").write_text(f"gitdir: {repo}/.git\n")
    assert ("worktree:API-1", True) in await cleaned(ports, owner)
    assert git(repo, "fsck", "--strict") == ""
    assert git(repo, "status", "--porcelain") == ""


async def test_c32_a_record_that_speaks_of_another_place_removes_nothing(
    ports: Ports, tree: Tree, owner: Actor, repo: Path
) -> None:
    marker = Path(tree.workspace) / "runtime" / "tree.json"
    marker.write_text(marker.read_text().replace(tree.path, str(repo)))
    item = (await items(ports, owner))["worktree:API-1"]
    await clean.apply(ports, {item.id: item.mark}, actor=owner, lose=True)
    assert (item.why, (repo / "README.md").exists()) == ("its record speaks of another place", True)


async def test_c38_a_pruned_worktree_is_mended_with_its_files_and_goes_the_next_time(
    ports: Ports, tree: Tree, owner: Actor, repo: Path, git: Git
) -> None:
    (folder(tree) / "draft.txt").write_text("half\n")
    (folder(tree) / ".git").unlink()
    git(repo, "worktree", "prune", "--expire", "now")
    assert (await items(ports, owner))["worktree:API-1"].verdict == "keep"
    done = await clean.apply(ports, {}, actor=owner)
    assert [(line.path, line.said) for line in done.lines] == [(tree.path, clean.MENDED)]
    assert git(folder(tree), "status", "--porcelain") == "?? draft.txt"
    assert ("worktree:API-1", True) in await cleaned(ports, owner)


async def test_a_worktree_that_a_person_locked_stays(
    ports: Ports, tree: Tree, owner: Actor, repo: Path, git: Git
) -> None:
    git(repo, "worktree", "lock", tree.path)
    item = (await items(ports, owner))["worktree:API-1"]
    assert (item.verdict, item.why) == ("keep", "somebody locked it (git worktree lock)")


async def test_a_lane_goes_with_its_branch_when_its_commits_are_kept(
    ports: Ports, tree: Tree, owner: Actor, repo: Path, git: Git
) -> None:
    lane = await lanes.open_lane(tree, 1)
    (Path(lane.path) / "lane.txt").write_text("x")
    await ports.trees.commit(lane, ["lane.txt"], "lane", trailers={})
    tip = await ports.trees.head(lane)
    assert ("lane:API-1/1", True) in await cleaned(ports, owner)
    assert git(repo, "branch", "--list", lane.branch) == ""
    assert git(repo, "for-each-ref", "--contains", tip, "--format=%(refname)") == "refs/beadmill/undo/API-1/1"


async def test_a_workspace_that_no_row_knows_goes_behind_an_undo_ref(
    ports: Ports, tree: Tree, owner: Actor, git: Git, repo: Path
) -> None:
    place = Path(tree.workspace).parent / "OLD-7"
    old = await ports.trees.open(tree.repository, str(place), branch="beadmill/OLD-7", base="main")
    (Path(old.path) / "draft.txt").write_text("half\n")
    assert ("worktree:OLD-7", True) in await cleaned(ports, owner)
    assert git(repo, "show", "refs/beadmill/undo/OLD-7/1:draft.txt") == "half"


async def test_what_was_set_aside_goes_only_when_it_is_named(ports: Ports, tree: Tree, owner: Actor) -> None:
    saved = Path(tree.workspace) / "runtime" / "set-aside" / "1"
    saved.mkdir(parents=True)
    (saved / "big").write_text("x")
    await cleaned(ports, owner)
    assert (saved / "big").exists()
    assert await cleaned(ports, owner, "set_aside:API-1/1", lose=True) == [("set_aside:API-1/1", True)]
    assert not saved.exists()


@pytest.mark.parametrize("nth", [1, 2, 3])
async def test_a_removal_killed_in_its_middle_is_finished_by_the_next_and_loses_nothing(
    ports: Ports, tree: Tree, owner: Actor, crash: Callable[[str, int], None], nth: int
) -> None:
    (folder(tree) / "draft.txt").write_text("half\n")
    crash("clean.tree", nth)
    with pytest.raises(crashpoints.Crashed):
        await cleaned(ports, owner)
    crashpoints.on_reach = None
    seen = await events.since(ports, actor=owner, topics=("ticket:API-1",))
    assert [e.kind for e in seen.events if e.kind == "clean.removed"] == []
    await cleaned(ports, owner)
    await cleaned(ports, owner)
    assert (await items(ports, owner), folder(tree).exists()) == ({}, False)
    assert [line.n for line in await undo.listing(ports, "API-1", actor=owner)] == [1]


async def test_half_written_files_and_old_copies_of_the_database_go(
    ports: Ports, project: views.ProjectView, owner: Actor
) -> None:
    home = ports.settings.home
    (home / "backups").mkdir()
    for n, name in enumerate(("a.db", "b.db", "c.db")):
        (home / "backups" / name).write_text("x")
        os.utime(home / "backups" / name, (n, n))
    for name in (".config-x.part", "new.part"):
        (home / name).write_text("x")
    os.utime(home / ".config-x.part", (0, 0))
    ages = clean.Ages(backups=1)
    view = await clean.preview(ports, ages=ages, actor=owner)
    await clean.apply(ports, {i.id: i.mark for i in view.items}, ages=ages, actor=owner)
    assert sorted(p.name for p in (home / "backups").iterdir()) == ["c.db"]
    assert sorted(p.name for p in home.glob("*.part")) == ["new.part"]


async def test_a_cancel_that_deletes_content_keeps_commits_and_drafts_behind_refs(
    ports: Ports, started: Starter, owner: Actor, git: Git, repo: Path
) -> None:
    tree = await tree_of(ports, await started())
    (folder(tree) / "draft.txt").write_text("half\n")
    view = await tickets.cancel(ports, "API-1", actor=owner, delete=["content", "log"])
    assert (view.state, folder(tree).exists(), await items(ports, owner)) == ("canceled", False, {})
    assert git(repo, "show", "refs/beadmill/undo/API-1/1:draft.txt") == "half"
    assert (await tickets.cancel(ports, "API-1", actor=owner, delete=["content"])).state == "canceled"


async def test_a_ticket_that_has_run_is_not_deleted_and_one_that_never_did_is(
    ports: Ports, started: Starter, owner: Actor
) -> None:
    await started()
    with pytest.raises(Conflict, match="has run"):
        await tickets.cancel(ports, "API-1", actor=owner, delete=["ticket"])
    assert (await tickets.show(ports, "API-1", actor=owner)).state == "active"
    draft = await tickets.create(ports, "API", title="Never", actor=owner)
    await tickets.cancel(ports, draft.key, actor=owner, delete=["ticket"])
    with pytest.raises(NotFound):
        await tickets.show(ports, draft.key, actor=owner)


async def test_logs_go_by_age_and_results_stay(ports: Ports, project: views.ProjectView, owner: Actor) -> None:
    ticket = await tickets.create(ports, "API", title="Say hello", sop="hello", actor=owner)
    await tickets.start(ports, ticket.key, actor=owner)
    await until(ports, ticket.key, lambda found: found.waits > 0)
    await tickets.cancel(ports, ticket.key, actor=owner)
    young, old = clean.Ages(logs=1), clean.Ages(logs=0)
    kinds = [{i.kind for i in (await clean.preview(ports, ages=a, actor=owner)).items} for a in (young, old)]
    assert ("sessions" in kinds[0], "sessions" in kinds[1]) == (False, True)
    (item,) = [i for i in (await clean.preview(ports, ages=old, actor=owner)).items if i.kind == "sessions"]
    done = await clean.apply(ports, {item.id: item.mark}, ages=old, actor=owner)
    (line,) = (await sessions.listing(ports, run=f"{ticket.key}-r1", actor=owner)).items
    assert ([x.removed for x in done.lines], line.end) == ([True], "Ran")
    assert (await sessions.log(ports, line.token, actor=owner)).lines == ()


@pytest.mark.parametrize(("shown", "verdict"), [("main", "ready"), ("side", "keep")])
async def test_c33_undo_refs_go_when_git_shows_the_merge(
    *, ports: Ports, tree: Tree, owner: Actor, git: Git, repo: Path, shown: str, verdict: str
) -> None:
    git(repo, "branch", "side", git(repo, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "side"))
    await ports.trees.undo(tree, "look")
    change = {"run_id": "API-1-r1", "forge": "local", "number": 1, "branch": tree.branch, "base": "main"}
    merge = {"head": tree.base_commit, "state": "merged", "merge_sha": git(repo, "rev-parse", shown)}

    def merged(tx: Any) -> None:
        tx.run(sa.update(t.runs).values(state="completed"))
        tx.run(sa.update(t.tickets).values(state="completed"))
        tx.run(sa.insert(t.changes).values(**change, **merge))

    await ports.store.write(merged)
    ages = clean.Ages(undo=0)
    (item,) = [i for i in (await clean.preview(ports, ages=ages, actor=owner)).items if i.kind == "undo"]
    await clean.apply(ports, {item.id: item.mark}, ages=ages, actor=owner)
    left = git(repo, "for-each-ref", "refs/beadmill/undo")
    assert (item.verdict, left == "") == (verdict, verdict == "ready")
