"""Schedules: the next time of a cron expression, and the service that fires what is due, once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlalchemy as sa
from cronsim import CronSim, CronSimError

from beadmill.errors import Invalid
from beadmill.store import tables
from beadmill.store.db import Store, Tx, stamp

c = tables.schedules
Fire = Callable[[int], Awaitable[None]]


def next_fire(expression: str, zone: str, after: datetime) -> datetime:
    """The first time after ``after``, in UTC; daylight saving as Debian's cron. Raises Invalid."""
    try:
        local = after.astimezone(ZoneInfo(zone))
        return next(CronSim(expression, local)).astimezone(UTC)
    except CronSimError as error:
        raise Invalid(f"{expression!r} is not a cron expression: {error}", code="BAD_CRON") from error
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise Invalid(f"There is no time zone {zone!r}", code="BAD_ZONE") from error


async def fire_due(store: Store, fire: Fire) -> int:
    """Claims each due schedule by moving its next time (one commit, so two daemons fire it once), then fires it.
    Times missed while nothing ran are one catch-up, not many."""
    claimed = await store.write(_claim_due)
    for schedule in claimed:
        await fire(schedule)
    return len(claimed)


def _claim_due(tx: Tx) -> list[int]:
    due = tx.run(sa.select(c).where(c.c.enabled == 1, c.c.next_at <= tx.now)).mappings().all()
    claimed = []
    for row in due:
        later = stamp(next_fire(row["cron"], row["zone"], tx.moment))
        query = sa.update(c).where(c.c.id == row["id"], c.c.next_at == row["next_at"]).values(next_at=later)
        if tx.run(query).rowcount == 1:
            claimed.append(int(row["id"]))
    return claimed
