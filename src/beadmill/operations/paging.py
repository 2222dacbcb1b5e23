"""Pages by cursor: the sort values of the last row, so a page costs the same at row 10 and row 10,000."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from sqlalchemy import ColumnElement, and_, or_

from beadmill.errors import Invalid

T = TypeVar("T")
LIMIT = 50
MOST = 200


class Page(BaseModel, Generic[T]):
    """``next`` is the cursor of the page behind this one, None at the end."""

    items: tuple[T, ...]
    next: str | None = None


def encode(values: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(values)).encode()).decode().rstrip("=")


def decode(cursor: str, count: int) -> list[Any]:
    """Raises Invalid when the text is not a cursor of ``count`` values."""
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        values = None
    if not isinstance(values, list) or len(values) != count:
        raise Invalid("this cursor is not one of ours", code="CURSOR", next="start again without a cursor")
    return values


def beyond(columns: Sequence[tuple[ColumnElement[Any], bool]], values: Sequence[Any]) -> ColumnElement[bool]:
    """Rows behind ``values`` in the order of ``columns`` (column, descending)."""
    options: list[ColumnElement[bool]] = []
    for i, (column, descending) in enumerate(columns):
        same = [c == v for (c, _), v in zip(columns[:i], values[:i], strict=True)]
        options.append(and_(*same, column < values[i] if descending else column > values[i]))
    return or_(*options)


def cut(rows: Sequence[Any], limit: int, key: Sequence[str]) -> tuple[list[Any], str | None]:
    """The page and its cursor, from ``limit + 1`` fetched rows; ``key`` names the sort columns of a row."""
    page = list(rows[:limit])
    more = len(rows) > limit
    return page, encode([getattr(page[-1], k) for k in key]) if more and page else None


def bounded(limit: int | None) -> int:
    if limit is not None and not 1 <= limit <= MOST:
        raise Invalid(f"limit is between 1 and {MOST}, not {limit}", code="LIMIT")
    return limit or LIMIT
