"""Store: one writer, many readers, events numbered by one counter row in the commit that made them true."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url

from beadmill import crashpoints
from beadmill.domain.values import SYSTEM, Actor, Event
from beadmill.errors import Unavailable, Unwritable
from beadmill.store import tables
from beadmill.store.broker import Broker

T = TypeVar("T")
Clock = Callable[[], datetime]
BUSY = 30_000  # milliseconds that a writer waits for another process's transaction
# What SQLite says by the first word of its error's name, the code, and what to do. All of them pass.
PASSING = {
    "FULL": ("DISK_FULL", "its disk is full", "make room there; work goes on by itself"),
    "BUSY": ("DATABASE_BUSY", "another process keeps it locked", "end what has it open (a shell of sqlite3, a backup)"),
    "READONLY": ("HOME_READ_ONLY", "it cannot be written", "make its folder writable"),
    "CANTOPEN": (
        "HOME_READ_ONLY",
        "it cannot be opened for writing",
        "make its folder writable, and its disk not full",
    ),
    "IOERR": ("DISK_FAILS", "the disk does not answer as it should", "look at the disk, and whether it is full"),
}


def utc_now() -> datetime:
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """UTC ISO-8601 with microseconds: sorts as text."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(slots=True)
class Tx:
    """One write transaction. Functions of store/journal take it first and never commit."""

    conn: Connection
    moment: datetime
    postgres: bool
    _events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def now(self) -> str:
        return stamp(self.moment)

    def emit(
        self,
        event: Event,
        *,
        run: str | None = None,
        visit: str | None = None,
        ticket: str | None = None,
        actor: Actor = SYSTEM,
    ) -> None:
        """Buffered; numbered and written as the last statements of the commit."""
        self._events.append(
            {
                "kind": event.kind,
                "run_id": run,
                "visit_id": visit,
                "ticket": ticket,
                "actor": str(actor),
                "data": dict(event.data),
                "at": self.now,
            }
        )

    def run(self, statement: sa.Executable, parameters: Any = None) -> sa.CursorResult[Any]:
        return self.conn.execute(statement, parameters)

    def flush_events(self) -> int:
        """Numbers of one commit are contiguous and follow commit order: the counter row is the lock."""
        if not self._events:
            return 0
        counter = tables.counters
        last: int = self.conn.execute(
            sa.update(counter)
            .where(counter.c.name == "events")
            .values(value=counter.c.value + len(self._events))
            .returning(counter.c.value)
        ).scalar_one()
        first = last - len(self._events) + 1
        rows = [{"seq": first + i, **e} for i, e in enumerate(self._events)]
        self.conn.execute(sa.insert(tables.events), rows)
        return last


class Store:
    """SQLite in a file (WAL, BEGIN IMMEDIATE, one writer thread) or PostgreSQL. No transaction spans an await."""

    def __init__(self, url: str, *, synchronous: Literal["NORMAL", "FULL"] = "NORMAL", clock: Clock = utc_now) -> None:
        self.url = url
        self.clock = clock
        self.postgres = url.startswith("postgresql")
        self.events = Broker()
        self.engine = _postgres(url) if self.postgres else _sqlite(url, synchronous)
        self._writers = ThreadPoolExecutor(4 if self.postgres else 1, thread_name_prefix="store-write")
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="store-read")

    @property
    def path(self) -> Path | None:
        database = make_url(self.url).database
        return None if self.postgres or not database else Path(database)

    async def read(self, fn: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self.read_now, fn)

    async def write(self, fn: Callable[[Tx], T]) -> T:
        """Once it has begun it is carried out, even when the awaiting task is cancelled."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, self._write, fn)

    def read_now(self, fn: Callable[[Connection], T]) -> T:
        """One snapshot: what several statements of ``fn`` see belongs together."""
        with self.engine.connect() as conn:
            conn.exec_driver_sql(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ" if self.postgres else "BEGIN DEFERRED"
            )
            return fn(conn)

    def write_now(self, fn: Callable[[Tx], T]) -> T:
        """For callers without a loop. Goes through the writer thread all the same."""
        return self._writers.submit(self._write, fn).result()

    def _write(self, fn: Callable[[Tx], T]) -> T:
        """Raises Unwritable when the database says no for now; nothing of ``fn`` is then in it."""
        with self._plainly():
            result, last = self._commit(fn)
        if last:
            self.events.publish(last)
        return result

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.OperationalError as error:
            name = str(getattr(error.orig, "sqlite_errorname", "")).removeprefix("SQLITE_").partition("_")[0]
            if name not in PASSING:
                raise
            code, why, next_ = PASSING[name]
            raise Unwritable(
                f"the database {self.path} says {error.orig}: {why}",
                code=code,
                kept="everything recorded so far",
                next=next_,
            ) from error

    def _commit(self, fn: Callable[[Tx], T]) -> tuple[T, int]:
        """The result, and the number of the last event (0 = none)."""
        with self.engine.connect().execution_options(beadmill_write=True) as conn:
            # One writer at a time on both databases: a park and what it waits for never miss each other.
            conn.exec_driver_sql("SELECT pg_advisory_xact_lock(7420)" if self.postgres else "BEGIN IMMEDIATE")
            tx = Tx(conn, self.clock(), self.postgres)
            try:
                result = fn(tx)
                last = tx.flush_events()
                crashpoints.reach("commit")
            except BaseException:
                conn.rollback()
                raise
            if self.postgres:
                conn.commit()
            else:
                conn.exec_driver_sql("COMMIT")
            crashpoints.reach("committed")
        return result, last

    def migrate(self, backups: Path | None = None) -> None:
        """To the newest schema; an existing older SQLite file is copied to ``backups`` first.

        Raises Unavailable for a schema of a newer release, Unwritable when the database says no for now.
        """
        from beadmill.store import migrate

        with self._plainly():
            migrate.upgrade(self.engine, before=lambda revision: self._backup(backups, revision))

    def _backup(self, folder: Path | None, revision: str) -> None:
        if folder is None or self.path is None or not self.path.exists():
            return
        target = folder / f"beadmill-{revision}-{self.clock():%Y%m%dT%H%M%S}.db"
        half = target.with_name(f".{target.name}.new")
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self.engine.connect() as conn:
                conn.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            shutil.copy2(self.path, half)
            half.replace(target)
        except OSError as error:
            half.unlink(missing_ok=True)
            raise Unavailable(
                f"the database could not be copied to {folder} before its upgrade: {error.strerror}",
                code="BACKUP_FAILED",
                kept="the database was not touched",
                next=f"make room for another {self.path.stat().st_size // 1024**2 + 1} MB, then start again",
            ) from error

    def check(self) -> None:
        """Integrity at start-up. Raises Unavailable naming what is wrong, Unwritable when it cannot be opened."""
        if self.postgres:
            return
        verdict = self._verdict()
        if verdict != "ok":
            raise Unavailable(
                f"The database {self.path} is damaged: {verdict}",
                kept="nothing was changed",
                next="restore the newest copy from the backups folder beside it",
            )

    def _verdict(self) -> str:
        """``ok``, or what SQLite says; a file whose beginning is damaged cannot even be asked."""
        try:
            with self._plainly(), self.engine.connect() as conn:
                return str(conn.exec_driver_sql("PRAGMA quick_check(1)").scalar())
        except sa.exc.DatabaseError as error:
            if getattr(error.orig, "sqlite_errorname", "").split("_")[1:2] in (["NOTADB"], ["CORRUPT"]):
                return str(error.orig)
            raise

    def close(self) -> None:
        self._writers.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        self.engine.dispose()


def _sqlite(url: str, synchronous: str) -> Engine:
    engine = sa.create_engine(url, poolclass=sa.pool.QueuePool, pool_size=6, connect_args={"check_same_thread": False})

    @sa.event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves: IMMEDIATE for writes, DEFERRED for reads
        for pragma in ("journal_mode=WAL", f"synchronous={synchronous}", f"busy_timeout={BUSY}", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _postgres(url: str) -> Engine:
    try:
        return sa.create_engine(url, pool_size=10, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise Unavailable("PostgreSQL needs the extra 'postgres'", next="pip install 'beadmill[postgres]'") from error
