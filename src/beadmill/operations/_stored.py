"""What grows in the data home and the repositories: logs of sessions, undo refs, copies of the database, half files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.errors import BeadmillError, Conflict
from beadmill.git import refs
from beadmill.git.run import z
from beadmill.operations import _ended, views
from beadmill.operations._ended import Owner
from beadmill.operations._survey import Candidate, kept
from beadmill.operations.ports import Ports
from beadmill.processes import folder as files
from beadmill.processes.folder import State
from beadmill.store import tables as t
from beadmill.workspaces import bases, leftovers, states

HALF = 3600.0  # seconds after which a half-written file has no writer any more
PARTS = ("*.part", "trust/*.part", "prompts/*.part", "tickets/*/*.part", "backups/*.part")


@dataclass(frozen=True, slots=True)
class Ages:
    """Days after which logs of ended runs and undo refs of merged tickets may go, and how many copies of the database
    stay. None = all stay."""

    logs: int | None = None
    undo: int | None = None
    backups: int | None = None


def _old(ports: Ports, ended: str, days: int) -> bool:
    return bool(ended) and datetime.fromisoformat(ended) < ports.clock() - timedelta(days=days)


# --- logs of sessions ---------------------------------------------------------------------------------------------
async def logs(ports: Ports, owners: Mapping[str, Owner], days: int | None) -> AsyncIterator[Candidate]:
    if days is None:
        return
    for owner in owners.values():
        if not owner.busy and _old(ports, owner.ended, days):
            found = await _logs_of(ports, owner.key)
            if found:
                yield await _log_item(ports, owner.key, found, days)


async def _logs_of(ports: Ports, key: str) -> tuple[Path, ...]:
    """The folders of sessions that have ended and were booked."""

    def read(conn: Connection) -> list[str]:
        s = t.sessions.c
        query = sa.select(s.token).join(t.runs, t.runs.c.id == s.run_id)
        query = query.join(t.tickets, t.tickets.c.id == t.runs.c.ticket_id)
        query = query.where(t.tickets.c.key == key, s.ended.is_not(None))
        return [token for (token,) in conn.execute(query)]

    tokens = await ports.store.read(read)
    found = [session.folder for token in tokens if (session := ports.sessions.find(token)) is not None]
    return await asyncio.to_thread(lambda: tuple(p for p in found if files.state(p) is State.ENDED))


async def _log_item(ports: Ports, key: str, found: tuple[Path, ...], days: int) -> Candidate:
    weight = await asyncio.to_thread(leftovers.weigh, *found)
    why = f"logs of {len(found)} session(s) that ended more than {days} days ago; results and costs stay"
    item = views.CleanItem(
        id=f"sessions:{key}",
        kind="sessions",
        ticket=key,
        path=str(ports.settings.home / "sessions"),
        size=weight.size,
        verdict="ready",
        why=why,
        mark=weight.mark,
    )

    async def remove(mark: str, _lose: bool) -> str:
        await ports.store.read(lambda conn: _ended.check_ended(conn, key))
        await asyncio.to_thread(_wipe, found, mark)
        return "results, costs and documents stay"

    return Candidate(item, remove)


def _wipe(found: Sequence[Path], mark: str) -> None:
    for folder in found:
        leftovers.inside(folder, folder.parent)
    if leftovers.weigh(*found).mark != mark:
        raise Conflict("it changed since it was looked at", code="CHANGED")
    for folder in found:
        leftovers.wipe(folder)


# --- undo refs ----------------------------------------------------------------------------------------------------
async def undo_refs(ports: Ports, owners: Mapping[str, Owner], days: int | None) -> AsyncIterator[Candidate]:
    if days is None:
        return
    for owner in owners.values():
        if owner.merged and not owner.busy and _old(ports, owner.ended, days):
            try:
                found = await _undo_item(ports, owner, days)
            except BeadmillError:  # the repository is gone: its refs went with it
                continue
            if found is not None:
                yield found


async def _undo_item(ports: Ports, owner: Owner, days: int) -> Candidate | None:
    repo = await states.repository(owner.repository)
    prefix = f"{states.PREFIX}/{owner.key}"
    there = await refs.listing(repo, prefix)
    if not there:
        return None
    base = await bases.newest_copy(repo, owner.base)
    shown = bool(base) and await refs.is_ancestor(repo, owner.merged, base)
    item = views.CleanItem(
        id=f"undo:{owner.key}",
        kind="undo",
        ticket=owner.key,
        path=prefix,
        size=0,
        verdict="ready" if shown else "keep",
        why=f"{len(there)} undo ref(s) of a change that was merged more than {days} days ago; git frees their space"
        if shown
        else f"git does not show here that {owner.merged[:12]} is in {owner.base}: fetch it first",
        mark=_print(there),
    )
    if not shown:
        return kept(item)

    async def remove(mark: str, _lose: bool) -> str:
        await ports.store.read(lambda conn: _ended.check_ended(conn, owner.key))
        now = await refs.listing(repo, prefix)
        if _print(now) != mark:
            raise Conflict("it changed since it was looked at", code="CHANGED")
        lines = [part for ref, sha in now.items() for part in (f"delete {ref}", sha)]
        await repo.git("update-ref", "-z", "--stdin", input=z(lines))  # all of them, or none
        return f"the merged change is {owner.merged[:12]}"

    return Candidate(item, remove)


def _print(there: Mapping[str, str]) -> str:
    return ",".join(f"{ref.rpartition('/')[2]}:{sha[:12]}" for ref, sha in sorted(there.items()))


# --- files of the home --------------------------------------------------------------------------------------------
async def home_files(ports: Ports, most: int | None) -> AsyncIterator[Candidate]:
    home = ports.settings.home
    for path in await asyncio.to_thread(lambda: list(_halves(ports))):
        yield _file(path, "temporary", "a file that a killed writer left half-written")
    if most is not None:
        copies = sorted((home / "backups").glob("*.db"), key=lambda p: p.stat().st_mtime, reverse=True)
        for path in copies[most:]:
            yield _file(path, "backup", f"{most} newer copies of the database stay")


def _halves(ports: Ports) -> Iterator[Path]:
    spaces = ports.settings.workspace_root
    found = [path for pattern in PARTS for path in ports.settings.home.glob(pattern)]
    found += [*spaces.glob("*/*/runtime/*.part"), *spaces.glob("*/*/lanes/*/runtime/*.part")]
    for path in sorted(found):
        if path.is_file() and not path.is_symlink() and path.lstat().st_mtime < time.time() - HALF:
            yield path


def _file(path: Path, kind: views.CleanKind, why: str) -> Candidate:
    weight = leftovers.weigh(path)
    item = views.CleanItem(
        id=f"{kind}:{path}",
        kind=kind,
        ticket="",
        path=str(path),
        size=weight.size,
        verdict="ready",
        why=why,
        mark=weight.mark,
    )

    async def remove(mark: str, _lose: bool) -> str:
        await asyncio.to_thread(_wipe, [path], mark)
        return why

    return Candidate(item, remove)
