"""Submodules of a worktree: which there are, and filling their folders before anybody works.

git gives every worktree submodules of its own, below its record (``<git_dir>/modules``). They are cloned with what the
user's checkout has of them, and without writing into its configuration: which are wanted is said in the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from beadmill.errors import BeadmillError
from beadmill.git.run import CREDENTIALS, Repo
from beadmill.git.trees import GITLINK
from beadmill.workspaces import record
from beadmill.workspaces.tree import Tree, repo_of

EVERY = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "submodule.active", "GIT_CONFIG_VALUE_0": "."}
TIME = 900.0  # seconds for one submodule with all that lie in it


@dataclass(frozen=True, slots=True)
class Submodule:
    """``name`` "" = nothing says where it comes from. ``filled`` says that its folder holds it; ``left`` that the
    repository or the user's configuration wants it left out."""

    path: str
    name: str = ""
    url: str = ""
    filled: bool = False
    left: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    path: str
    said: str
    next: str


async def listed(repo: Repo) -> tuple[Submodule, ...]:
    """Those that the index names, by path."""
    assert repo.work_tree is not None
    paths = [entry.partition("\t") for entry in (await repo.git("ls-files", "-z", "--stage")).fields]
    links = sorted(path for mode, _, path in paths if mode.startswith(GITLINK))
    if not links:
        return ()
    known = await _known(repo)
    own = await repo.git("config", "-z", "--get-regexp", r"^submodule\..*\.(active|update)$", ok=(0, 1))
    wanted = dict(entry.partition("\n")[::2] for entry in own.fields)
    return tuple(_one(path, known.get(path, {}), wanted, repo.work_tree) for path in links)


def _one(path: str, said: Mapping[str, str], wanted: Mapping[str, str], tree: Path) -> Submodule:
    name = said.get("name", "")
    update = wanted.get(f"submodule.{name}.update", said.get("update", ""))
    left = update == "none" or wanted.get(f"submodule.{name}.active", "true") in ("false", "no", "off", "0")
    place = tree / path
    filled = place.is_dir() and not place.is_symlink() and any(place.iterdir())
    return Submodule(path, name, CREDENTIALS.sub(r"\1", said.get("url", "")), filled, left)


async def _known(repo: Repo) -> dict[str, dict[str, str]]:
    """What ``.gitmodules`` of the checked out commit says, by path."""
    keys = r"^submodule\..*\.(path|url|update)$"
    done = await repo.git("config", "--blob", "HEAD:.gitmodules", "-z", "--get-regexp", keys, ok=())
    found: dict[str, dict[str, str]] = {}
    for entry in done.fields if done.code == 0 else ():
        key, _, value = entry.partition("\n")
        name, _, what = key.removeprefix("submodule.").rpartition(".")
        found.setdefault(name, {"name": name})[what] = value
    return {said["path"]: said for said in found.values() if "path" in said}


async def set_up(tree: Tree) -> tuple[Failed, ...]:
    """Fills the folders that are empty; answers with those that stay so. What is filled already is not looked at: an
    agent may have worked in it. May be done again after a kill."""
    repo = repo_of(tree)
    failed = []
    for one in await listed(repo):
        if one.name and not one.filled and not one.left:
            try:
                await _fill(repo, tree, one)
            except BeadmillError as error:
                failed.append(_failed(one, error.message))
    return tuple(failed)


async def _fill(repo: Repo, tree: Tree, one: Submodule) -> None:
    if ".." not in PurePosixPath(one.name).parts:
        begun = repo.git_dir / "modules" / one.name
        if begun.exists():  # a killed git began it, or somebody emptied the folder: git would take it for whole
            begun.rename(record.free(Path(tree.workspace) / "runtime"))
    shared = repo.common / "modules" / one.name
    borrow = ("--reference", str(shared), "--dissociate") if (shared / "HEAD").is_file() else ()
    how = ("--quiet", "update", "--recursive", *borrow)
    await repo.git("submodule", *how, "--", one.path, env=EVERY, timeout=TIME)


def _failed(one: Submodule, message: str) -> Failed:
    said = f"{one.path} from {one.url or 'nowhere'}: {message}"
    if "transport 'file' not allowed" in message:
        return Failed(
            one.path, said, "allow submodules from this machine: git config --global protocol.file.allow always"
        )
    return Failed(
        one.path,
        said,
        f"make `git submodule update --init -- {one.path}` work in your checkout, then retry; or leave it out there: "
        f"git config submodule.{one.name}.update none",
    )
