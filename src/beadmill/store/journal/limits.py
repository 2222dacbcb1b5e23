"""The circuit breaker: a provider's account whose limit was met is asked by nobody until it resets, or answers.

Nothing is stored for it but what sessions ended with: the newest end of the account says whether it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from beadmill.settings import EFFORTS
from beadmill.store import tables
from beadmill.store.db import Tx, stamp
from beadmill.store.journal import moves

s, ls = tables.sessions, tables.leases
ASKED_AGAIN = "asked_again"
SILENT = ("Stopped", "Lost")  # ends that say nothing of the provider
LOOKED_AT = 50  # newest ends of an agent


def account_of(seat: str) -> str:
    """``agent/provider`` of a seat as it is written; the provider is "" where the agent has but one."""
    agent, _, rest = seat.partition("/")
    provider, slash, model = rest.partition("/")
    return f"{agent}/{provider if slash and model not in EFFORTS else ''}"


def closed_until(conn: sa.Connection, account: str, *, now: datetime, call: str = "") -> str:
    """When the account is asked again (as stored), "" = now. The ``call`` that met the limit waits by itself."""
    agent = account.partition("/")[0]
    query = sa.select(s.c.token, s.c.seat, s.c.end, s.c.ended).where(
        s.c.kind == "agent", s.c.agent == agent, s.c.ended.is_not(None)
    )
    for row in conn.execute(query.order_by(s.c.ended.desc()).limit(LOOKED_AT)):
        kind = row.end.get("type", "") if isinstance(row.end, Mapping) else ""
        if account_of(row.seat) != account or kind in SILENT:
            continue
        until = row.end.get("until") if kind == "Limited" else None
        if not until or datetime.fromisoformat(until) <= now or row.token.rpartition("/")[0] == call:
            return ""
        return "" if _asked_again(conn, account) >= row.ended else stamp(datetime.fromisoformat(until))
    return ""


def _asked_again(conn: sa.Connection, account: str) -> str:
    query = sa.select(ls.c.taken).where(ls.c.kind == ASKED_AGAIN, ls.c.resource == account)
    return conn.execute(query).scalar() or ""


def ask_again(tx: Tx, account: str) -> None:
    """A person does not wait: what ended before now closes the account no more."""
    tx.run(sa.delete(ls).where(ls.c.kind == ASKED_AGAIN, ls.c.resource == account))
    tx.run(sa.insert(ls).values(kind=ASKED_AGAIN, resource=account, holder="", host="", taken=tx.now))
    answered(tx, account)


def answered(tx: Tx, account: str) -> None:
    """Whoever waits for the account may go on."""
    moves.woken(tx, "limit", account)
