"""Freeing disk space: first what could go and why, then exactly that, each thing looked at again right before."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from beadmill import crashpoints
from beadmill.domain.values import Actor, Event, Permission
from beadmill.errors import BeadmillError
from beadmill.operations import _ended, _stored, _survey, views
from beadmill.operations._stored import Ages
from beadmill.operations._survey import Candidate
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require

MENDED = "its link to git was broken and is mended; its files are as they were"
__all__ = ["Ages", "apply", "preview"]


async def preview(ports: Ports, *, actor: Actor, ages: Ages | None = None) -> views.CleanView:
    """Changes nothing. What has ended and could go, with what each would free; and what stays, with the reason."""
    require(actor, Permission.READ)
    found = [one.item for one in await _found(ports, ages or Ages())]
    items = sorted(found, key=lambda item: (("ready", "ask", "keep").index(item.verdict), -item.size, item.id))
    sums = {verdict: sum(i.size for i in items if i.verdict == verdict) for verdict in ("ready", "ask")}
    return views.CleanView(items=tuple(items), free=sums["ready"], asks=sums["ask"])


async def _found(ports: Ports, ages: Ages) -> list[Candidate]:
    owners = await ports.store.read(_ended.owners)
    sources = (
        _survey.workspaces(ports, owners),
        _stored.logs(ports, owners, ages.logs),
        _stored.undo_refs(ports, owners, ages.undo),
        _stored.home_files(ports, ages.backups),
    )
    return [one for source in sources async for one in source]


async def apply(
    ports: Ports, wanted: Mapping[str, str], *, actor: Actor, ages: Ages | None = None, lose: bool = False
) -> views.CleanedView:
    """Removes what ``wanted`` names: id → the mark of the preview. What is not any more as it was looked at stays, and
    its line says so. ``lose``: also what is on no ref, of the things that are named. Broken links of worktrees are
    mended, whatever is named. Done twice, the second time finds nothing."""
    require(actor, Permission.ADMIN)
    owners = await ports.store.read(_ended.owners)
    there = await asyncio.to_thread(lambda: list(_survey.places(ports, owners)))
    mended = [_mended(path) for place in there async for path in _survey.mend(place)]
    here = {one.item.id: one for one in await _found(ports, ages or Ages())}
    lines = mended + [
        await remove(ports, id_, mark, here.get(id_), lose=lose, actor=actor) for id_, mark in wanted.items()
    ]
    return views.CleanedView(lines=tuple(lines), freed=sum(line.freed for line in lines))


def _mended(path: str) -> views.CleanedLine:
    return views.CleanedLine(id=f"mended:{path}", path=path, removed=False, freed=0, said=MENDED)


async def remove(
    ports: Ports, id_: str, mark: str, found: Candidate | None, *, lose: bool, actor: Actor
) -> views.CleanedLine:
    """One thing, for an operation that has checked who asks."""
    if found is None:
        return views.CleanedLine(id=id_, path="", removed=False, freed=0, said="it is gone already, or is needed again")
    item = found.item
    try:
        said = await found.remove(mark, lose)
    except (BeadmillError, OSError) as error:
        return views.CleanedLine(id=id_, path=item.path, removed=False, freed=0, said=f"it stays: {error}")
    line = views.CleanedLine(id=id_, path=item.path, removed=True, freed=item.size, said=said)
    crashpoints.reach("clean.booked")
    await ports.store.write(lambda tx: _booked(tx, item.ticket, line, actor))
    return line


def _booked(tx: Any, ticket: str, line: views.CleanedLine, actor: Actor) -> None:
    data = line.model_dump(mode="json", exclude={"removed"})
    tx.emit(Event("clean.removed", data), ticket=ticket or None, actor=actor)
