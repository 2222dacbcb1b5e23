"""Does red-on-base, done in place, say what a clean second tree says?

``python -m benchmarks.red_on_base REPOSITORY [--command "python -m pytest -q"] [--commits 50] [--only tests/unit] [--json]``

Replays the newest commits that change tests and other files together. Each is looked at twice: *in place*, in one tree that
keeps what earlier commits left behind (build output, caches), where the changed files that are no tests go back to the parent as
Beadmill does it; and in a *clean* tree of the parent with the commit's tests. Counts the commits whose verdicts differ. The
changed test files are added to the command. A command that only builds what is newer than its output shows what the policy
``build.red_on_base = fail`` would get wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beadmill.domain.ended import CommandResult
from beadmill.proof import red
from beadmill.proof.frameworks import is_test
from beadmill.workspaces.worktrees import Tree, Worktrees
from benchmarks import world

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BARS = {"differ": "0 before the policy may refuse by default"}
PATIENCE = 600  # seconds of one command


@dataclass(frozen=True, slots=True)
class Replayed:
    commit: str
    in_place: str
    clean: str


def git(at: Path, *args: str) -> str:
    return subprocess.run(["git", "-C", str(at), *args], check=True, capture_output=True, text=True).stdout.strip()


def candidates(repository: Path, most: int, only: Sequence[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Commits with the test files they add or change, and the other files, the oldest first."""
    found = []
    for commit in git(repository, "rev-list", "--no-merges", "HEAD").split():
        if len(found) == most:
            break
        listed = git(repository, "diff-tree", "-r", "--no-commit-id", "--name-status", "--no-renames", commit)
        rows = [line.split("\t", 1) for line in listed.splitlines()]
        tests = [p for s, p in rows if s != "D" and is_test(p) and (not only or p.startswith(tuple(only)))]
        others = [p for _, p in rows if not is_test(p)]
        if tests and others and git(repository, "rev-list", "--parents", "-1", commit).count(" ") == 1:
            found.append((commit, tests, others))
    return reversed(found)


def run(at: Path, command: Sequence[str], tests: Sequence[str]) -> CommandResult:
    env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(at.parent)}
    argv = [*command, *tests]
    try:
        done = subprocess.run(argv, check=False, cwd=at, env=env, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return CommandResult(shlex.join(argv), None, PATIENCE, timed_out=True)
    return CommandResult(shlex.join(argv), done.returncode, 0.0, (done.stdout + done.stderr)[-64_000:])


async def in_place(trees: Worktrees, tree: Tree, one: tuple[str, list[str], list[str]], command: Sequence[str]) -> str:
    """As proof.start does it: the whole state kept, the other files as before, the run, everything put back."""
    commit, tests, others = one
    await trees.reset(tree, commit, why="benchmark")
    run(Path(tree.path), command, tests)  # what a bead's own checks leave behind
    kept, before = await trees.undo(tree, "benchmark"), await trees.tree_hash(tree)
    await trees.restore_paths(tree, f"{commit}^", others, kept)
    said = red.verdict([run(Path(tree.path), command, tests)]).result
    await trees.stash_apply(tree, kept)
    if await trees.tree_hash(tree) != before:
        raise RuntimeError(f"{commit}: the tree was not put back")
    return said


def clean(repository: Path, place: Path, one: tuple[str, list[str], list[str]], command: Sequence[str]) -> str:
    commit, tests, _ = one
    git(repository, "worktree", "add", "-q", "--detach", str(place), f"{commit}^")
    try:
        git(place, "checkout", "-q", commit, "--", *tests)
        return red.verdict([run(place, command, tests)]).result
    finally:
        git(repository, "worktree", "remove", "--force", str(place))


async def measure(
    repository: Path, root: Path, most: int, only: Sequence[str], command: Sequence[str]
) -> dict[str, Any]:
    copy = root / "copy"
    git(root, "clone", "-q", "--no-local", str(repository), str(copy))
    trees = Worktrees()
    tree = await trees.open(str(copy), str(root / "workspace"), branch="replay", base="")
    done = []
    for n, one in enumerate(candidates(copy, most, only)):
        there = await in_place(trees, tree, one, command)
        done.append(Replayed(one[0], there, clean(copy, root / f"clean-{n}", one, command)))
    differ = [one for one in done if one.in_place != one.clean]
    return {
        "commits": len(done),
        "verdicts": dict(Counter(one.clean for one in done)),
        "differ": len(differ),
        "differing": [f"{one.commit[:12]} {one.in_place} {one.clean}" for one in differ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--command", default="python3 -m pytest -q", help="the changed test files are added to it")
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--only", nargs="*", default=[], help="folders whose tests count")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=wanted.repository.resolve().parent) as folder:
        command = shlex.split(wanted.command)
        result = asyncio.run(measure(wanted.repository, Path(folder), wanted.commits, wanted.only, command))
    world.show(result, BARS, as_json=wanted.json)


if __name__ == "__main__":
    main()
