"""Idempotency-Key: the same key does the same thing once, and answers the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.engine import Connection

from beadmill.domain.values import Actor, Json
from beadmill.errors import Conflict
from beadmill.store import tables as t
from beadmill.store.db import Tx


def once(tx: Tx, key: str, *, operation: str, actor: Actor, request: Json, now: str, act: Callable[[], Json]) -> Json:
    """``act`` runs at most once per key and actor, in the caller's transaction; its small JSON result is kept.

    Raises Conflict when the key was used for something else. An empty key means "no receipt".
    """
    if not key:
        return act()
    earlier = known(tx.conn, key, operation=operation, actor=actor, request=request)
    if earlier is not None:
        return earlier
    result = act()
    kept: dict[str, Any] = {"request": _print(request), "value": result}
    tx.conn.execute(insert(t.receipts).values(key=f"{actor}:{key}", operation=operation, result=kept, at=now))
    return result


def known(conn: Connection, key: str, *, operation: str, actor: Actor, request: Json) -> Json:
    """What this key did before; None when it is new. For operations that look at the world before they write.

    Raises Conflict when the key was used for something else.
    """
    row = conn.execute(select(t.receipts).where(t.receipts.c.key == f"{actor}:{key}")).first() if key else None
    return None if row is None else _same(row, operation, _print(request))


def _print(request: Json) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode()).hexdigest()


def _same(row: Any, operation: str, print_: str) -> Json:
    if row.operation != operation or row.result["request"] != print_:
        raise Conflict(
            "this Idempotency-Key was already used for another request",
            code="KEY_REUSED",
            details={"operation": row.operation, "at": row.at},
            kept="nothing was changed",
            next="send a fresh key with a new request",
        )
    return row.result["value"]
