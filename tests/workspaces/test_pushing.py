from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.errors import Refused, Stale, Unavailable
from beadmill.workspaces.worktrees import Tree, Worktrees

Git = Callable[..., str]


@pytest.fixture
async def worked(trees: Worktrees, tree: Tree) -> str:
    (Path(tree.path) / "a").write_text("a")
    return await trees.commit(tree, ["a"], "one", trailers={})


@pytest.fixture
def there(tree: Tree, git: Git) -> Callable[[], str]:
    """The ticket's branch on the remote, "" = absent."""
    origin = Path(tree.repository).parent / "origin.git"
    return lambda: git(origin, "for-each-ref", "--format=%(objectname)", tree.ref)


async def test_a_first_push_makes_the_branch(
    trees: Worktrees, tree: Tree, worked: str, there: Callable[[], str]
) -> None:
    await trees.push(tree, expected_remote=None)
    await trees.push(tree, expected_remote=None)
    assert there() == worked


async def test_a_rewritten_branch_replaces_what_we_pushed(
    trees: Worktrees, tree: Tree, worked: str, there: Callable[[], str]
) -> None:
    await trees.push(tree, expected_remote=None)
    squashed = await trees.squash(tree, tree.base_commit, ["a"], "other words", {})
    await trees.push(tree, expected_remote=None)
    assert there() == squashed != worked


async def test_work_of_somebody_else_on_the_branch_is_not_overwritten(
    trees: Worktrees, tree: Tree, worked: str, there: Callable[[], str], git: Git
) -> None:
    other = git(Path(tree.path), "commit-tree", "-p", worked, "-m", "theirs", f"{worked}^{{tree}}")
    git(Path(tree.path), "push", "-q", "origin", f"{other}:{tree.ref}")
    with pytest.raises(Stale) as caught:
        await trees.push(tree, expected_remote=None)
    assert (caught.value.details["found"], there()) == (other, other)


@pytest.mark.parametrize("expected", ["", "f" * 40])
async def test_a_wrong_expectation_is_stale(
    trees: Worktrees, tree: Tree, worked: str, there: Callable[[], str], *, expected: str
) -> None:
    await trees.push(tree, expected_remote="")
    await trees.squash(tree, tree.base_commit, ["a"], "other words", {})
    with pytest.raises(Stale) as caught:
        await trees.push(tree, expected_remote=expected)
    assert (caught.value.details, there()) == ({"found": worked, "expected": expected}, worked)


@pytest.mark.usefixtures("worked")
async def test_a_rule_of_the_remote_is_told(trees: Worktrees, tree: Tree, there: Callable[[], str]) -> None:
    hook = Path(tree.repository).parent / "origin.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho no such branch names >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(Refused, match="no such branch names") as caught:
        await trees.push(tree, expected_remote=None)
    assert (caught.value.code, there()) == ("PUSH_REFUSED", "")


@pytest.mark.usefixtures("worked")
async def test_a_remote_that_is_gone_is_unavailable(trees: Worktrees, tree: Tree) -> None:
    origin = Path(tree.repository).parent / "origin.git"
    origin.rename(origin.with_name("gone.git"))
    with pytest.raises(Unavailable) as caught:
        await trees.push(tree, expected_remote=None)
    assert caught.value.code == "REMOTE_UNREACHABLE"
