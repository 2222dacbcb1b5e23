"""Repositories of unusual shape, and what else has gone wrong with worktrees in public (docs/cases.md)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from beadmill.errors import BeadmillError, Conflict, Refused, Unavailable
from beadmill.git import commits
from beadmill.processes import procs
from beadmill.workspaces import attach
from beadmill.workspaces.landing import land
from beadmill.workspaces.worktrees import Tree, Worktrees
from tests.processes.session_world import until

Git = Callable[..., str]


async def opened(
    trees: Worktrees, repo: Path, workspace: Path, base: str = "main", branch: str = "beadmill/DEMO-1"
) -> Tree:
    return await trees.open(str(repo), str(workspace), branch=branch, base=base)


def on(branch: str, place: Path, git: Git) -> Path:
    """A checkout with one commit on a branch that is not called main, and its bare origin."""
    place.mkdir()
    git(place, "init", "-q", "--bare", "-b", branch, "origin.git")
    git(place, "clone", "-q", "origin.git", "checkout")
    git(place / "checkout", "switch", "-qc", branch)
    git(place / "checkout", "commit", "-q", "--allow-empty", "-m", "first")
    git(place / "checkout", "push", "-qu", "origin", branch)
    return place / "checkout"


def branches(repo: Path, git: Git) -> list[str]:
    return git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads").split("\n")


def executable(place: Path, script: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return place


# --- bases ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("identity", [True, False])
async def test_c01_a_repository_without_a_commit_is_refused_and_nothing_is_left(
    trees: Worktrees, workspace: Path, tmp_path: Path, git: Git, *, identity: bool
) -> None:
    if not identity:
        (tmp_path / "user" / ".gitconfig").write_text("")
    git(tmp_path, "init", "-q", "-b", "master", "r")
    first = (await attach.inspect(tmp_path / "r")).problems[0]
    assert (first.message, first.next) == ("the repository has no commit yet", "Make a first commit and push it.")
    with pytest.raises(BeadmillError):
        await opened(trees, tmp_path / "r", workspace)
    assert (git(tmp_path / "r", "for-each-ref"), sorted(p.name for p in (tmp_path / "r").iterdir())) == ("", [".git"])


@pytest.mark.parametrize(("branch", "told"), [("master", True), ("trunk", True), ("develop", False)])
async def test_c02_the_base_is_the_default_or_the_current_branch_and_never_a_name_that_is_assumed(
    trees: Worktrees, workspace: Path, tmp_path: Path, git: Git, *, branch: str, told: bool
) -> None:
    checkout = on(branch, tmp_path / "place", git)
    if told:
        git(checkout, "remote", "set-head", "origin", branch)
    else:
        git(tmp_path / "place" / "origin.git", "symbolic-ref", "HEAD", "refs/heads/nowhere")
    tree = await opened(trees, checkout, workspace, base="")
    assert ((await attach.inspect(checkout)).base, tree.base) == (branch, branch)
    assert branches(checkout, git) == ["beadmill/DEMO-1", branch]


async def test_c03_a_detached_checkout_has_the_remotes_default_as_base_and_a_commit_as_start(
    trees: Worktrees, workspace: Path, tmp_path: Path, git: Git
) -> None:
    checkout = on("master", tmp_path / "place", git)
    git(checkout, "checkout", "-q", "--detach")
    tree = await opened(trees, checkout, workspace, base="")
    assert (tree.base, tree.base_commit) == ("master", git(checkout, "rev-parse", "origin/master"))


@pytest.mark.parametrize(
    ("there", "wanted", "given"),
    [
        ("release/1.0", "release", "release-2"),
        ("foo", "foo/bar", "foo-bar"),
        ("alex/one", "Alex/one", "alex/one-2"),
        ("alex/one", "Alex/two", "alex/two"),
    ],
)
async def test_c04_c05_a_name_that_clashes_as_a_folder_or_in_its_case_gives_way_before_anything_is_made(
    trees: Worktrees, repo: Path, workspace: Path, git: Git, *, there: str, wanted: str, given: str
) -> None:
    git(repo, "config", "core.ignorecase", "true")
    git(repo, "branch", there)
    tree = await opened(trees, repo, workspace, branch=wanted)
    assert (tree.branch, branches(repo, git)) == (given, sorted([there, given, "main"]))


@pytest.mark.parametrize("deleted", [True, False])
async def test_c06_a_branch_that_is_checked_out_elsewhere_is_left_alone_and_another_name_is_taken(
    trees: Worktrees, repo: Path, workspace: Path, git: Git, *, deleted: bool
) -> None:
    git(repo, "worktree", "add", "-qb", "ticket-1", "../w1")
    if deleted:
        (repo.parent / "w1").rename(repo.parent / "gone")
    tree = await opened(trees, repo, workspace, branch="ticket-1")
    assert (tree.branch, branches(repo, git)) == ("ticket-1-2", ["main", "ticket-1", "ticket-1-2"])


# --- places ---------------------------------------------------------------------------------------------------------
async def test_c11_a_repository_that_an_agent_committed_inside_the_tree_never_lands(
    trees: Worktrees, tree: Tree, git: Git
) -> None:
    inner = Path(tree.path) / "inner"
    git(Path(tree.path), "init", "-q", "inner")
    git(inner, "commit", "-q", "--allow-empty", "-m", "inner")
    git(Path(tree.path), "add", "-A")
    git(Path(tree.path), "commit", "-qm", "by the agent")
    paths = await trees.changed(tree, tree.base_commit)
    assert paths == ("inner",)
    with pytest.raises(Refused) as caught:
        await land(tree, paths, "bead", {}, tree.base_commit)
    assert caught.value.code == "NESTED_REPOSITORY"


async def test_c13_branches_below_one_another_do_not_mix_up_their_tickets(
    trees: Worktrees, repo: Path, workspace: Path
) -> None:
    deep = await opened(trees, repo, workspace, branch="feat/x/y")
    flat = await opened(trees, repo, workspace.with_name("DEMO-2"), branch="feat")
    assert [Path(tree.path).parent.name for tree in (deep, flat)] == ["DEMO-1", "DEMO-2"]
    assert (deep.branch, flat.branch) == ("feat/x/y", "feat-2")
    assert await opened(trees, repo, workspace, branch="feat/x/y") == deep


async def test_c12_a_workspace_root_that_is_no_folder_is_a_clear_error_and_the_repository_is_untouched(
    trees: Worktrees, repo: Path, tmp_path: Path, git: Git
) -> None:
    (tmp_path / "root").write_text("a file\n")
    with pytest.raises(Refused, match="cannot be made: Not a directory") as caught:
        await opened(trees, repo, tmp_path / "root" / "DEMO-1")
    assert (caught.value.code, branches(repo, git)) == ("WORKSPACE_PLACE", ["main"])


# --- hooks and signatures -------------------------------------------------------------------------------------------
async def test_c16_a_hook_that_only_works_in_the_checkout_stops_no_commit(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    executable(repo / ".husky/pre-commit", '. "$(dirname "$0")/_/husky.sh"')
    (repo / ".husky/.gitignore").write_text("_\n")
    executable(repo / ".husky/_/husky.sh", "exit 0")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "hooks")
    git(repo, "push", "-q", "origin", "main")
    git(repo, "config", "core.hooksPath", ".husky")
    tree = await opened(trees, repo, workspace)
    (Path(tree.path) / "a").write_text("a")
    assert await trees.commit(tree, ["a"], "a", trailers={}) == await trees.head(tree) != tree.base_commit


async def test_c17_what_was_reviewed_is_what_is_committed_whatever_a_hook_rewrites(
    trees: Worktrees, tree: Tree, repo: Path, git: Git
) -> None:
    executable(repo / ".git/hooks/pre-commit", "sed -i s/a/A/ a.txt; git add a.txt; echo junk > gen.txt")
    (Path(tree.path) / "a.txt").write_text("a\n")
    reviewed = await trees.diff(tree, tree.base_commit)
    made = await trees.commit(tree, ["a.txt"], "a", trailers={})
    assert (await trees.diff(tree, tree.base_commit, made), await trees.status(tree)) == (reviewed, ())


@pytest.mark.parametrize(
    "script", ["echo $$ > '{pid}'; exec sleep 300", "echo $$ > '{pid}'; echo failed to sign >&2; exit 2"]
)
async def test_c18_a_signature_that_waits_or_fails_is_bounded_named_and_leaves_no_process(
    trees: Worktrees, tree: Tree, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch, *, script: str
) -> None:  # fmt: skip
    monkeypatch.setattr(commits, "SIGNING", 0.5)
    signer = executable(tmp_path / "signer", script.format(pid=tmp_path / "pid"))
    git(Path(tree.repository), "config", "commit.gpgSign", "true")
    git(Path(tree.repository), "config", "gpg.program", str(signer))
    (Path(tree.path) / "a").write_text("a")
    with pytest.raises(Unavailable, match="the commit could not be signed") as caught:
        await trees.commit(tree, ["a"], "one", trailers={})
    assert (caught.value.code, await trees.head(tree)) == ("SIGNING_FAILED", tree.base_commit)
    await until(lambda: procs.look(int((tmp_path / "pid").read_text())) is None)


# --- remotes --------------------------------------------------------------------------------------------------------
class Guarded(BaseHTTPRequestHandler):
    """Asks everybody for a password."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is said."""


async def test_c19_a_remote_that_asks_for_a_password_is_named_and_nobody_waits(repo: Path, git: Git) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Guarded)
    Thread(target=server.serve_forever, daemon=True).start()
    git(repo, "remote", "set-url", "origin", f"http://127.0.0.1:{server.server_port}/r.git")
    found = await attach.inspect(repo, base="main")
    server.shutdown()
    server.server_close()
    (warning,) = found.warnings
    assert f"there are no credentials for the remote 'origin' at 127.0.0.1:{server.server_port}" in warning.message


async def test_c20_commits_that_nobody_pushed_stay_and_the_start_is_the_remotes(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "mine alone")
    mine = git(repo, "rev-parse", "main")
    tree = await opened(trees, repo, workspace)
    assert tree.base_commit == git(repo.parent / "origin.git", "rev-parse", "main")
    assert git(repo, "rev-parse", "main") == mine


async def test_c21_a_bare_layout_is_one_repository_from_its_root_and_from_its_worktree(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    place = repo.parent / "layout"
    place.mkdir()
    git(place, "clone", "-q", "--bare", str(repo.parent / "origin.git"), ".bare")
    (place / ".git").write_text("gitdir: ./.bare\n")
    git(place, "worktree", "add", "-q", "main", "main")
    found = [await attach.inspect(path) for path in (place, place / "main")]
    assert [(one.path, one.problems) for one in found] == [(str(place / "main"), ())] * 2
    assert await attach.common_of(place) == await attach.common_of(place / "main") == place / ".bare"
    assert (await opened(trees, place / "main", workspace)).common == place / ".bare"


async def test_c22_in_a_shallow_clone_changes_are_compared_with_the_recorded_start(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    git(repo, "push", "-q", "origin", "main", "main:other")
    url = (repo.parent / "origin.git").as_uri()
    git(repo.parent, "clone", "-q", "--depth", "1", "--no-single-branch", url, "shallow")
    tree = await opened(trees, repo.parent / "shallow", workspace)
    (Path(tree.path) / "a").write_text("a")
    await trees.commit(tree, ["a"], "a", trailers={})
    rewritten = git(repo, "commit-tree", "-m", "unrelated", "main^{tree}")
    git(repo, "push", "-qf", "origin", f"{rewritten}:refs/heads/main")
    await trees.fetch_base(tree)
    start = await trees.merge_base(tree)
    assert (start, await trees.changed(tree, start)) == (tree.base_commit, ("a",))


async def test_c23_a_checkout_that_does_not_show_its_commit_is_given_to_nobody(
    trees: Worktrees, repo: Path, workspace: Path, git: Git
) -> None:
    executable(repo / ".git/hooks/post-checkout", "exit 1")
    git(repo, "config", "filter.broken.smudge", "cat > /dev/null")
    (repo / ".gitattributes").write_text("*.md filter=broken\n")
    git(repo, "add", ".gitattributes")
    git(repo, "commit", "-qm", "a filter")
    git(repo, "push", "-q", "origin", "main")
    with pytest.raises(Conflict) as caught:
        await opened(trees, repo, workspace)
    assert (caught.value.code, "README.md" in caught.value.details["status"]) == ("BAD_CHECKOUT", True)
    git(repo, "config", "--unset", "filter.broken.smudge")
    assert await trees.status(await opened(trees, repo, workspace)) == ()


# --- at once --------------------------------------------------------------------------------------------------------
async def test_c26_ten_tickets_at_once_wait_for_locks_of_somebody_else_and_lose_nothing(
    trees: Worktrees, repo: Path, workspace: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [repo / ".git" / name for name in ("packed-refs.lock", "index.lock", "refs/heads/beadmill/DEMO-3.lock")]
    held[2].parent.mkdir(parents=True)
    for lock in held:
        lock.touch()
    met: list[float] = []
    now = asyncio.sleep

    async def pause(seconds: float) -> None:
        met.append(seconds)
        for lock in held if seconds == 0.2 else ():
            lock.unlink(missing_ok=True)
        await now(0)

    monkeypatch.setattr("beadmill.git.run.asyncio.sleep", pause)

    async def work(n: int) -> str:
        tree = await opened(trees, repo, workspace.with_name(f"DEMO-{n}"), branch=f"beadmill/DEMO-{n}")
        (Path(tree.path) / f"{n}").write_text("work\n")
        return await trees.commit(tree, [f"{n}"], f"{n}", trailers={})

    made = await asyncio.gather(*(work(n) for n in range(10)))
    assert [git(repo, "ls-tree", "--name-only", sha).split("\n") for sha in made] == [
        [f"{n}", "README.md"] for n in range(10)
    ]
    assert {0.05, 0.1, 0.2} <= set(met)


# --- names ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["feat/$(touch${IFS}PWNED)", "`id`", "-x"])
async def test_c83_a_base_whose_name_would_be_code_in_a_shell_is_a_name(
    trees: Worktrees, repo: Path, workspace: Path, git: Git, *, name: str
) -> None:
    git(repo, "update-ref", f"refs/heads/{name}", "main")
    git(repo, "push", "-q", "origin", f"refs/heads/{name}:refs/heads/{name}")
    tree = await opened(trees, repo, workspace, base=name)
    (Path(tree.path) / "a").write_text("a")
    head = await trees.commit(tree, ["a"], "title\n--force", trailers={})
    await trees.push(tree, expected_remote=None)
    assert (tree.base, await trees.fetch_base(tree), await trees.merge_base(tree)) == (name, *[tree.base_commit] * 2)
    assert git(repo.parent / "origin.git", "rev-parse", "beadmill/DEMO-1") == head
    assert list(repo.parent.rglob("PWNED")) == []


# --- what an agent leaves in its tree -------------------------------------------------------------------------------
async def test_c84_links_pipes_and_loops_in_the_tree_are_recorded_as_what_they_are_and_nothing_hangs(
    trees: Worktrees, tree: Tree, tmp_path: Path, git: Git
) -> None:
    (tmp_path / "secret").write_text("not of this tree\n")
    place = Path(tree.path)
    for name, target in (("a", "b"), ("b", "a"), ("passwd", str(tmp_path / "secret")), ("up", "../../../..")):
        (place / name).symlink_to(target)
    os.mkfifo(place / "pipe")
    paths = await trees.changed(tree, tree.base_commit)
    assert paths == ("a", "b", "passwd", "up")
    made = await trees.commit(tree, paths, "links", trailers={})
    listed = git(place, "ls-tree", made).splitlines()
    assert [line.split()[0] for line in listed] == ["100644", "120000", "120000", "120000", "120000"]
    assert "not of this tree" not in await trees.diff(tree, tree.base_commit)


async def test_c27_two_writers_in_one_worktree_take_turns_and_both_land(trees: Worktrees, tree: Tree, git: Git) -> None:
    for name in "ab":
        (Path(tree.path) / name).write_text(name)
    await asyncio.gather(*(trees.commit(tree, [name], name, trailers={}) for name in "ab"))
    assert git(Path(tree.path), "ls-tree", "--name-only", "HEAD").split("\n") == ["README.md", "a", "b"]
