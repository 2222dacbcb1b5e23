"""What a home shows to somebody who looks at it from outside, beside its daemon."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from beadmill.demo import material
from beadmill.processes.sessions import FolderSessions


@dataclass(slots=True)
class Shown:
    place: material.Place

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """A database that is not there yet has no rows."""
        if not (self.place.home / "beadmill.db").exists():
            return []
        with closing(sqlite3.connect(f"file:{self.place.home / 'beadmill.db'}?mode=ro", uri=True, timeout=10)) as conn:
            return conn.execute(query).fetchall()

    def one(self, query: str) -> Any:
        return next(iter(self.rows(query)), (None,))[0]

    @property
    def over(self) -> bool:
        return self.one("select state from tickets") in ("completed", "canceled")

    @property
    def mirrored(self) -> bool:
        """The files of the documents are as new as the database."""
        cursor = self.one("select value from settings where key = 'mirror.seq'")
        told = "select max(seq) from events where kind in ('artifact.put', 'gate.rebound')"
        return int(cursor or 0) >= int(self.one(told) or 0)

    def sessions(self) -> FolderSessions:
        return FolderSessions(self.place.home / "sessions", adapters={}, sandboxes={})

    def tokens(self) -> list[str]:
        return [row[0] for row in self.rows("select token from sessions order by token")]
