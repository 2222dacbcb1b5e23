from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from beadmill.engine.cron import fire_due, next_fire
from beadmill.errors import Invalid
from beadmill.store import tables
from beadmill.store.db import stamp
from tests.engine.bench import Bench


def test_the_next_time_follows_the_zone_over_a_change_of_clocks() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)

    assert next_fire("30 9 * * *", "Europe/Berlin", before) == datetime(2026, 3, 29, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(("cron", "zone"), [("every day", "UTC"), ("0 0 * * *", "Mars/Olympus")])
def test_a_bad_schedule_is_refused(cron: str, zone: str) -> None:
    with pytest.raises(Invalid):
        next_fire(cron, zone, datetime(2026, 1, 1, tzinfo=UTC))


async def test_times_missed_while_nothing_ran_are_one_catch_up(bench: Bench) -> None:
    fired: list[int] = []

    async def fire(schedule: int) -> None:
        fired.append(schedule)

    long_ago = stamp(bench.store.clock() - timedelta(days=3))
    row = {"name": "nightly", "cron": "*/5 * * * *", "sop": "hello", "next_at": long_ago}
    await bench.write(lambda tx: tx.run(sa.insert(tables.schedules).values(**row)))

    assert (await fire_due(bench.store, fire), await fire_due(bench.store, fire), fired) == (1, 0, [1])
