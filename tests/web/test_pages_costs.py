"""Money on the screens: what has no price is said beside what has."""

from __future__ import annotations

import httpx2
import pytest
import sqlalchemy as sa
from house_for_tests import Starter
from pages_for_tests import page, text

from beadmill.operations.ports import Ports
from beadmill.store import tables


async def spend(ports: Ports, started: Starter, usd: float | None, unpriced: int) -> None:
    await started()
    spent = {"tokens": 1200, "cost_usd": usd, "unpriced": unpriced}
    await ports.store.write(lambda tx: tx.run(sa.update(tables.runs).values(**spent)))


@pytest.mark.usefixtures("project")
async def test_c89_a_sum_with_unpriced_turns_says_so_on_every_page(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    await spend(ports, started, 1.2, 3)
    for path in ("/", "/tickets/API-1", "/runs"):
        assert "$1.20 + 3 unpriced turns" in text(await page(signed_in, path)), path


@pytest.mark.usefixtures("project")
async def test_a_ticket_whose_budget_is_blind_warns(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    await signed_in.post("/projects/API", data={"name": "api", "set.budget.usd": "5"})
    await spend(ports, started, None, 1)
    shown = text(await page(signed_in, "/tickets/API-1"))
    assert "The budget of $5.00 does not see 1 unpriced turn." in shown


@pytest.mark.usefixtures("project")
async def test_a_ticket_without_such_a_budget_does_not_warn(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    await spend(ports, started, None, 1)
    assert "does not see" not in await page(signed_in, "/tickets/API-1")
