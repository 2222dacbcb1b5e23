"""File mirrors of documents, for people and other programs: written from the database, never read back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.artifacts.base import KINDS
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.yaml import to_yaml
from beadmill.domain.values import Json
from beadmill.errors import BeadmillError
from beadmill.store import blobs, tables
from beadmill.store.db import Store, Tx

e, r, t, s = tables.events, tables.runs, tables.tickets, tables.settings
REST = 0.2  # seconds between two looks; people and programs read these files, no run does
CURSOR = "mirror.seq"
TOLD = ("artifact.put", "gate.rebound")  # an edit that is taken back puts nothing, the gate shows the earlier row again


class Mirror:
    """``<home>/tickets/<KEY>/<kind>.yaml`` (beads as ``beads.jsonl``), newest version, 0600."""

    def __init__(self, store: Store, home: Path) -> None:
        self._store = store
        self._home = home

    async def serve(self) -> None:
        async for _ in self._store.events.subscribe(rest=REST):
            while await self.catch_up():
                pass

    async def catch_up(self, batch: int = 100) -> int:
        """Writes what was put since the cursor; a killed daemon writes the same files again."""
        found = await self._store.read(lambda conn: self._new(conn, batch))
        if not found:
            return 0
        await asyncio.to_thread(self._write, {path: text for _, path, text in found})
        last = found[-1][0]
        await self._store.write(lambda tx: _advance(tx, last))
        return len(found)

    def _new(self, conn: Connection, batch: int) -> list[tuple[int, Path, str]]:
        cursor = conn.execute(sa.select(s.c.value).where(s.c.key == CURSOR)).scalar() or 0
        query = sa.select(e).where(e.c.kind.in_(TOLD), e.c.seq > cursor).order_by(e.c.seq).limit(batch)
        return [
            (row["seq"], *self._file(conn, row["run_id"], *_meant(conn, row["data"])))
            for row in conn.execute(query).mappings()
        ]

    def _file(self, conn: Connection, run: str, kind: str, sha: str) -> tuple[Path, str]:
        key = conn.execute(sa.select(t.c.key).join(r, r.c.ticket_id == t.c.id).where(r.c.id == run)).scalar()
        folder = self._home / "tickets" / key if key else self._home / "runs" / run
        data = blobs.get_blob(conn, sha)
        try:
            doc = KINDS[kind].parse(data)
        except (KeyError, BeadmillError, ValueError):  # of a plugin, or of another release: as it is
            return folder / f"{kind}.json", data.decode()
        return (
            (folder / "beads.jsonl", doc.jsonl()) if isinstance(doc, Beads) else (folder / f"{kind}.yaml", to_yaml(doc))
        )

    def _write(self, files: dict[Path, str]) -> None:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = path.with_name(f".{path.name}.new")
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
            fresh.replace(path)


def _meant(conn: Connection, data: Mapping[str, Json]) -> tuple[str, str]:
    """Kind and sha256 of the document an event is about."""
    if "to" in data:
        ref = blobs.artifact(conn, data["to"]).ref
        return ref.kind, ref.sha256
    return data["kind"], data["sha256"]


def _advance(tx: Tx, seq: int) -> None:
    if not blobs.insert_ignore(tx, s, key=CURSOR, value=seq):
        tx.run(sa.update(s).where(s.c.key == CURSOR).values(value=seq))
