"""Everything on the disk that could be removed, each with why it may go or why it stays, and the removal of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from beadmill.errors import BeadmillError, Conflict
from beadmill.operations import _ended, views
from beadmill.operations._ended import Owner
from beadmill.operations.ports import Ports
from beadmill.processes.places import LANES
from beadmill.workspaces import cleaning, leftovers
from beadmill.workspaces.tree import read_marker

Remove = Callable[[str, bool], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """``remove(mark, lose)`` looks again and raises BeadmillError or OSError when the thing must stay; its answer says
    what is kept, and where."""

    item: views.CleanItem
    remove: Remove


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace: of ``owner``, or of nobody that a row knows."""

    ports: Ports
    folder: Path
    key: str
    owner: Owner | None

    @property
    def busy(self) -> str:
        return self.owner.busy if self.owner else ""

    @property
    def repository(self) -> str:
        return self.owner.repository if self.owner else ""

    async def check(self) -> None:
        """Right before a removal. Raises Conflict."""
        leftovers.inside(self.folder, self.folder.parent)
        await self.ports.store.read(lambda conn: _ended.check_ended(conn, self.key))


async def workspaces(ports: Ports, owners: Mapping[str, Owner]) -> AsyncIterator[Candidate]:
    for place in await asyncio.to_thread(lambda: list(places(ports, owners))):
        async for found in of_place(place):
            yield found


def places(ports: Ports, owners: Mapping[str, Owner]) -> Iterator[Place]:
    """Every folder that a run names, and every folder below the root that looks like one."""
    named = {Path(owner.workspace): owner for owner in owners.values() if owner.workspace}
    folders = {path for path in ports.settings.workspace_root.glob("*/*") if not path.name.startswith(".")}
    for folder in sorted(folders | set(named)):
        if folder.is_dir() or folder.is_symlink():
            yield Place(ports, folder, folder.name, named.get(folder) or owners.get(folder.name))


async def of_place(place: Place) -> AsyncIterator[Candidate]:
    if place.folder.is_symlink():
        yield _stays(place, "workspace", place.folder, "it is a link, and links are never followed")
        return
    for lane in sorted((place.folder / LANES).glob("*"), key=lambda path: path.name.zfill(9)):
        found = await _tree(place, lane, "lane")
        if found is not None:
            yield found
    found = await _tree(place, place.folder, "worktree")
    if found is not None:
        yield found
    for rest in await asyncio.to_thread(lambda: list(_rest(place))):
        yield rest


async def _tree(place: Place, folder: Path, kind: views.CleanKind) -> Candidate | None:
    id_ = f"{kind}:{place.key}" + (f"/{folder.name}" if kind == "lane" else "")
    if place.busy:
        path = folder / "tree"
        return _stays(place, kind, path, place.busy, id_=id_) if path.exists() else None
    found = await cleaning.look(folder, place.repository)
    if found is None:
        return None
    item = views.CleanItem(
        id=id_,
        kind=kind,
        ticket=place.key,
        path=str(found.place),
        size=found.size,
        verdict=found.verdict,
        why=found.why,
        loses=found.loses,
        mark=found.mark,
    )

    async def remove(mark: str, lose: bool) -> str:
        tree = read_marker(folder, "tree")
        if tree is None:
            raise Conflict("nothing says whose worktree this is", code="NO_MARKER")
        async with cleaning.hold(tree):
            await place.check()
            return await cleaning.release(folder, mark, repository=place.repository, lose=lose)

    return Candidate(item, remove)


async def mend(place: Place) -> AsyncIterator[str]:
    """Broken links of the worktrees of an ended ticket, put right: the folders. What cannot be mended is said by the
    look that follows."""
    if place.busy or place.folder.is_symlink():
        return
    for folder in (place.folder, *sorted((place.folder / LANES).glob("*"))):
        found = await cleaning.look(folder, place.repository)
        if found is not None and found.broken and found.tree is not None:
            try:
                await cleaning.mend(found)
            except (BeadmillError, OSError):
                continue
            yield str(found.place)


def _rest(place: Place) -> Iterator[Candidate]:
    """What lies beside the trees."""
    runtime = place.folder / "runtime"
    for gone in sorted(runtime.glob(leftovers.GONE)):
        yield _folder(place, "temporary", (gone,), "what a killed removal left; its state is behind an undo ref")
    for one in sorted([*(runtime / "set-aside").glob("*"), *runtime.glob("foreign-git-*")]):
        loses = (f"{one.name}: no undo ref could keep it",)
        yield _folder(place, "set_aside", (one,), "it was moved out of the worktree to be saved", loses=loses)
    spare = leftovers.spare(place.folder)
    if spare:
        yield _folder(place, "workspace", spare, "homes, caches and scratch of sessions that have ended")


def _folder(
    place: Place, kind: views.CleanKind, paths: tuple[Path, ...], why: str, *, loses: tuple[str, ...] = ()
) -> Candidate:
    whole = kind == "workspace"
    named = place.folder if whole else paths[0]
    id_ = f"{kind}:{place.key}" + ("" if whole else f"/{named.name}")
    if place.busy:
        return _stays(place, kind, named, place.busy, id_=id_)
    weight = leftovers.weigh(*paths)
    item = views.CleanItem(
        id=id_,
        kind=kind,
        ticket=place.key,
        path=str(named),
        size=weight.size,
        verdict="ask" if loses else "ready",
        why=why,
        loses=loses,
        mark=weight.mark,
    )

    async def remove(mark: str, lose: bool) -> str:
        await place.check()
        if loses and not lose:
            raise Conflict(f"{why}: {loses[0]}", code="KEPT")
        await asyncio.to_thread(_wipe, paths, mark)
        return "nothing of it is needed" if not loses else "it is gone for good, as you asked"

    return Candidate(item, remove)


def _wipe(paths: tuple[Path, ...], mark: str) -> None:
    """Raises Conflict when something below is not as it was when somebody looked."""
    for path in paths:
        leftovers.inside(path, path.parent)
    if leftovers.weigh(*paths).mark != mark:
        raise Conflict("it changed since it was looked at", code="CHANGED")
    for path in paths:
        leftovers.wipe(path)
    leftovers.drop_empty(dict.fromkeys(path.parent for path in paths if path.parent.name == "set-aside"))


def _stays(place: Place, kind: views.CleanKind, path: Path, why: str, *, id_: str = "") -> Candidate:
    item = views.CleanItem(
        id=id_ or f"{kind}:{place.key}", kind=kind, ticket=place.key, path=str(path), size=0, verdict="keep", why=why
    )
    return kept(item)


def kept(item: views.CleanItem) -> Candidate:
    async def remove(_mark: str, _lose: bool) -> str:
        raise Conflict(item.why, code="KEPT")

    return Candidate(item, remove)
