"""Changing a plan that is being built: what is done stays, what is to come may be edited, split, added, skipped, reordered.

Pure: changes in, a plan or every reason against it out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from beadmill.artifacts import text
from beadmill.artifacts.beads import Bead, Beads
from beadmill.errors import Conflict, Invalid, NotFound

APP_OWNED = ("id", "priority", "created_at", "external_ref", "qa_origin")
_ALIASES = {str(field.alias): name for name, field in Bead.model_fields.items() if field.alias}


class _Change(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Edit(_Change):
    """``fields`` replace the bead's own; its id, place and origin stay."""

    do: Literal["edit"]
    bead: str
    fields: dict[str, Any] = Field(min_length=1)


class Add(_Change):
    """A whole bead, at the end or before another one."""

    do: Literal["add"]
    fields: dict[str, Any]
    before: str = ""


class Split(_Change):
    """Two or more beads in the place of one. What they do not say is as in that one; what waited for it waits for all."""

    do: Literal["split"]
    bead: str
    into: tuple[dict[str, Any], ...] = Field(min_length=2)


class Skip(_Change):
    """It is not built, and nothing waits for it any more."""

    do: Literal["skip"]
    bead: str


class Unskip(_Change):
    do: Literal["unskip"]
    bead: str


class Order(_Change):
    """These beads take, in this order, the places that they have now among themselves."""

    do: Literal["order"]
    beads: tuple[str, ...] = Field(min_length=2)


Change = Annotated[Edit | Add | Split | Skip | Unskip | Order, Field(discriminator="do")]
Row = dict[str, Any]


def replanned(plan: Beads, changes: Sequence[Change], *, done: Collection[str]) -> Beads:
    """The plan with the changes in their order. ``done`` beads have landed and cannot be touched.

    Raises NotFound for a bead that is not in the plan, Conflict for one that is done, Invalid for nothing changed,
    Unprocessable with every problem of the result (its graph too).
    """
    rows = [bead.model_dump(mode="json", by_alias=False) for bead in plan.beads]
    for change in changes:
        rows = _APPLY[type(change)](rows, change, frozenset(done))
    made = text.from_value(Beads.kind, {"beads": _numbered(rows)})
    assert isinstance(made, Beads)
    return kept(plan, made, done=done)


def kept(plan: Beads, made: Beads, *, done: Collection[str]) -> Beads:
    """``made``, when it leaves what is done as it was and changes something. Raises Conflict, Invalid."""
    if made == plan:
        raise Invalid("these changes leave the plan as it is", code="NOT_CHANGED", kept="the plan")
    now = {bead.id: bead.sha for bead in made.beads}
    for bead in plan.beads:
        if bead.id in done and now.get(bead.id) != bead.sha:
            raise _is_done(bead.id)
    return made


def _is_done(name: str) -> Conflict:
    return Conflict(
        f"{name} is done: its commit is on the branch",
        code="BEAD_DONE",
        kept="the plan, and your input",
        next="add a bead that changes what it made",
    )


def said(change: Change) -> str:
    """One line for people."""
    match change:
        case Edit():
            return f"edited {change.bead}: {', '.join(change.fields)}"
        case Add():
            return f"added {change.fields.get('id', 'a bead')}"
        case Split():
            return f"split {change.bead} into {len(change.into)}"
        case Order():
            return f"reordered {', '.join(change.beads)}"
        case Skip() | Unskip():
            return f"{'skipped' if isinstance(change, Skip) else 'took up again'} {change.bead}"


def _edit(rows: list[Row], change: Edit, done: frozenset[str]) -> list[Row]:
    n = _at(rows, change.bead, done)
    rows[n] = rows[n] | {name: value for name, value in _named(change.fields).items() if name not in APP_OWNED}
    return rows


def _add(rows: list[Row], change: Add, _done: frozenset[str]) -> list[Row]:
    at = _at(rows, change.before, frozenset()) if change.before else len(rows)
    return [*rows[:at], _named(change.fields), *rows[at:]]


def _split(rows: list[Row], change: Split, done: frozenset[str]) -> list[Row]:
    n = _at(rows, change.bead, done)
    whole = rows[n]
    parts = [
        {**whole, "id": f"{change.bead}-{i}", **_named(given), "issue_type": whole["issue_type"]}
        for i, given in enumerate(change.into, 1)
    ]
    names = [part["id"] for part in parts]
    for row in rows:
        after = _after(row)
        if change.bead in after:
            row["dependencies"] = {"blocked_by": [x for x in after if x != change.bead] + names}
    return [*rows[:n], *parts, *rows[n + 1 :]]


def _skip(rows: list[Row], change: Skip | Unskip, done: frozenset[str]) -> list[Row]:
    rows[_at(rows, change.bead, done)]["skipped"] = isinstance(change, Skip)
    return rows


def _order(rows: list[Row], change: Order, done: frozenset[str]) -> list[Row]:
    places = sorted(_at(rows, name, done) for name in change.beads)
    moved = [rows[_at(rows, name, done)] for name in change.beads]
    made = list(rows)
    for place, row in zip(places, moved, strict=True):
        made[place] = row
    return made


_APPLY: Mapping[type, Callable[[list[Row], Any, frozenset[str]], list[Row]]] = {
    Edit: _edit, Add: _add, Split: _split, Skip: _skip, Unskip: _skip, Order: _order,
}  # fmt: skip


def _at(rows: Sequence[Row], name: str, done: frozenset[str]) -> int:
    found = next((n for n, row in enumerate(rows) if row.get("id") == name), None)
    if found is None:
        raise NotFound(f"the plan has no bead {name}", code="BEAD_NOT_FOUND", kept="the plan")
    if name in done:
        raise _is_done(name)
    return found


def _named(fields: Mapping[str, Any]) -> Row:
    """As a person or an agent writes them, camel case or not."""
    return {_ALIASES.get(name, name): value for name, value in fields.items()}


def _after(row: Row) -> list[str]:
    dependencies = row.get("dependencies") or {}
    return list(dependencies.get("blocked_by") or ())


def _numbered(rows: Sequence[Row]) -> list[Row]:
    """Order, and who waits for whom, are Beadmill's to write."""
    blocks = {row.get("id"): [o.get("id") for o in rows if row.get("id") in _after(o)] for row in rows}
    return [
        {**row, "priority": n, "dependencies": {"blocked_by": _after(row), "blocks": blocks[row.get("id")]}}
        for n, row in enumerate(rows, 1)
    ]
