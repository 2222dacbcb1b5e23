"""What one activation of a visit shares: its memo, its fence, the phase that waits to be written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy.engine import Connection

from beadmill import crashpoints
from beadmill.domain.machine import Phase
from beadmill.domain.sop import Graph
from beadmill.domain.values import Event, Json, VisitRef
from beadmill.engine.port import Work
from beadmill.processes.contract import Sessions
from beadmill.settings import RunSettings
from beadmill.store.db import Store, Tx
from beadmill.store.journal import steps
from beadmill.store.journal.steps import Memo, Row

T = TypeVar("T")
Renew = Callable[[Connection], "dict[str, Json] | None"]


@dataclass(slots=True)
class Activation:
    """Mutable, owned by one task tree on the engine's loop; nothing of it outlives a park."""

    store: Store
    sessions: Sessions
    host: str
    ref: VisitRef
    owner: str
    memo: Memo
    graph: Graph
    settings: RunSettings
    work: Work
    comment: str = ""
    renew: Renew | None = None  # the settings that are not frozen, as they are now
    prompts: Mapping[str, str | None] | None = None
    pending: Phase | None = None
    seen: set[str] = field(default_factory=set)
    entered: set[str] = field(default_factory=set)  # session tokens this activation re-entered (rule 15)
    rows: dict[tuple[str, int], Row] = field(default_factory=dict)
    renewals: dict[str, RunSettings] = field(default_factory=dict)  # by what was recorded: most tries read the same

    @property
    def visit(self) -> str:
        return str(self.ref)

    def claim_name(self, name: str) -> None:
        if name in self.seen:
            raise RuntimeError(f"the durable name {name!r} is used twice in {self.ref}")
        self.seen.add(name)

    def round_of(self, name: str) -> int:
        """Sum over all prefixes: it grows whenever any of them is forgotten, so old rows never match again."""
        return sum(self.memo.rounds.get(prefix, 0) for prefix in prefixes(name))

    def key(self, name: str) -> str:
        return f"{self.visit}/{name}#{self.round_of(name)}"

    def known(self, name: str) -> Row | None:
        at = (name, self.round_of(name))
        return self.rows.get(at) or self.memo.rows.get(at)

    def has_records(self, scope: str) -> bool:
        """Did this item do anything before? Such items are re-entered before new ones start (rule 14)."""
        inside, token = f"{scope}/", f"{self.visit}/{scope}/"
        return any(name.startswith(inside) for name, _ in self.memo.rows) or any(
            t.startswith(token) for t in (*self.memo.sessions, *self.memo.decisions)
        )

    def retry_notes(self, scope: str) -> tuple[str, ...]:
        """Notes of retries that forgot something above, at or below ``scope``."""
        above = set(prefixes(scope))
        notes: list[str] = []
        for gate, row in sorted(self.memo.decisions.items(), key=lambda one: str(one[1]["at"])):
            forgot: list[str] = row["detail"]["forget"] if gate.startswith(f"{self.visit}/blocked#") else []
            if row["note"] and any(not scope or f in above or f.startswith(f"{scope}/") for f in forgot):
                notes.append(row["note"])
        return tuple(notes)

    async def write(self, fn: Callable[[Tx], T]) -> T:
        return await self.store.write(fn)

    async def record(self, name: str, kind: str, result: Json, event: Event | None = None) -> Row:
        """Raises Superseded when this activation lost its visit."""
        round_, phase = self.round_of(name), self.pending
        row = await self.store.write(
            lambda tx: steps.record(
                tx, self.visit, self.owner, name, round_, kind=kind, result=result, phase=phase, event=event
            )
        )
        self.written(phase)
        self.rows[name, round_] = row
        self.passed(name)
        return row

    def written(self, phase: Phase | None) -> None:
        if self.pending is phase:
            self.pending = None

    def passed(self, name: str) -> None:
        """The crash point behind every durable call, by name."""
        crashpoints.reach(f"after {self.ref.node}/{name}")

    def renewed(self, live: dict[str, Json]) -> RunSettings:
        key = json.dumps(live, sort_keys=True)
        if key not in self.renewals:
            self.renewals[key] = self.settings.renewed(live)
        return self.renewals[key]

    async def result(self, row: Row) -> Json:
        return row.result if row.blob is None else await self.store.read(lambda conn: steps.full(conn, row))


def prefixes(name: str) -> Iterator[str]:
    """ "a/b/c" → "", "a", "a/b", "a/b/c": the scopes a row depends on, itself included."""
    yield ""
    at = name.find("/")
    while at >= 0:
        yield name[:at]
        at = name.find("/", at + 1)
    yield name
