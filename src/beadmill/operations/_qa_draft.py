"""The one draft of a round: shared by everybody who checks, saved compare-and-set by revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from beadmill import redact
from beadmill.artifacts.qa import ItemResult, QaChecklist, bad_links, begun
from beadmill.domain.values import Json
from beadmill.errors import Invalid, Stale
from beadmill.store import tables as t
from beadmill.store.db import Tx

d = t.drafts.c
EVERYBODY = ""  # the user of a draft that is nobody's own


@dataclass(frozen=True, slots=True)
class Draft:
    """``results`` has every item of the checklist. ``revision`` 0 = nothing was saved."""

    revision: int
    results: tuple[ItemResult, ...]
    saved: str | None = None


def load(conn: Connection, visit: str, checklist: QaChecklist) -> Draft:
    query = sa.select(t.drafts).where(d.target == visit, d.user == EVERYBODY)
    row = conn.execute(query).first()
    if row is None:
        return Draft(0, begun(checklist))
    known = {one["item"]: ItemResult.model_validate(one) for one in row.body}
    return Draft(row.revision, tuple(known.get(one.item, one) for one in begun(checklist)), row.updated)


def save(tx: Tx, visit: str, checklist: QaChecklist, results: Mapping[str, Json], *, revision: int) -> None:
    """Takes the named items over, whole; others stay. Raises Stale, Invalid."""
    now = load(tx.conn, visit, checklist)
    unchanged(now, revision)
    given = {name: checked(checklist, name, value) for name, value in results.items()}
    body = [given.get(one.item, one).model_dump(mode="json") for one in now.results]
    values: dict[str, Any] = {"revision": revision + 1, "body": body, "updated": tx.now}
    if revision == 0:
        tx.run(sa.insert(t.drafts).values(target=visit, user=EVERYBODY, **values))
    else:
        tx.run(sa.update(t.drafts).where(d.target == visit, d.user == EVERYBODY).values(**values))


def unchanged(now: Draft, revision: int) -> None:
    if now.revision != revision:
        raise Stale(
            "the results were saved elsewhere in the meantime",
            code="DRAFT_STALE",
            details={
                "revision": now.revision,
                "yours": revision,
                "updated": now.saved,
                "results": [one.model_dump(mode="json") for one in now.results],
            },
            kept="what was saved there; yours is still in this window",
            next="take over what was saved, or save again over its revision",
        )


def checked(checklist: QaChecklist, name: str, value: Json) -> ItemResult:
    """A result as it may be saved: it need not be complete. Raises Invalid."""
    if checklist.item(name) is None:
        raise Invalid(
            f"there is no item {name}",
            code="QA_ITEM",
            kept="your input",
            next=f"its items: {', '.join(item.id for item in checklist.items)}",
        )
    fields = dict(value) if isinstance(value, dict) else {}
    fields.pop("evidence", None)  # files are added and removed by themselves
    try:
        result = ItemResult.model_validate({**fields, "item": name})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        said = f"{name}: {'.'.join(map(str, first['loc'])) or 'result'}: {first['msg']}"
        raise Invalid(said, code="QA_RESULT", kept="your input") from error
    if wrong := bad_links(result):
        raise Invalid(f"{name}: not an http or https link: {wrong[0].url[:200]}", code="QA_LINK", kept="your input")
    clean: ItemResult = ItemResult.model_validate(redact.ours().work(result.model_dump(mode="json")))
    return clean


def payload(results: Sequence[ItemResult]) -> Json:
    """What the gate takes: the draft as it stands."""
    return {"results": [one.model_dump(mode="json", exclude={"evidence"}) for one in results]}
