"""Every setting of a run with where its value comes from, for the installation, a project or a ticket; and changing it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from beadmill.domain.machine import TicketState
from beadmill.domain.values import Actor, Event, Permission
from beadmill.errors import Conflict, Invalid, Unprocessable
from beadmill.leaves import WHEN, Leaf, flat, leaves, nested
from beadmill.operations import _rows, views
from beadmill.operations._cascade import Cascade
from beadmill.operations.ports import Ports
from beadmill.operations.projects import bad_settings, project_row
from beadmill.operations.receipts import once
from beadmill.operations.rules import require
from beadmill.settings import RunSettings
from beadmill.store import tables as t
from beadmill.store.db import Tx
from beadmill.store.journal.budgets import spending

NEXT = {"visit": "from the next stage", "try": "from the next try", "session": "from the next session"}
NOTHING = "none"  # typed for a setting that can be unset: nothing here, whatever is inherited


@dataclass(frozen=True, slots=True)
class _Running:
    """What the run of a ticket goes by. ``now`` differs from ``frozen`` in what was read again last."""

    frozen: Mapping[str, Any]
    now: Mapping[str, Any]
    over: bool


async def show(ports: Ports, *, actor: Actor, project: str = "", ticket: str = "") -> views.SettingsView:
    """Of a ticket, else of a project, else of the installation. Raises NotFound."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: _show(ports, conn, project, ticket))


def _show(ports: Ports, conn: Connection, project: str, ticket: str) -> views.SettingsView:
    row = _rows.ticket_row(conn, ticket) if ticket else None
    short = row.short if row else project
    above = project_row(conn, short).overrides if short else None
    cascade = Cascade.of(ports.profile, above, row.overrides if row else None)
    running = _running(conn, row.run_id) if row and row.run_id else None
    scope = "ticket" if row else "project" if short else "profile"
    by_layer = cascade.by_layer()
    return views.SettingsView(
        scope=scope,
        name=row.key if row else short,
        frozen=running is not None,
        problem=ports.profile.problem,
        settings=tuple(_view(leaf, by_layer[leaf.path], running) for leaf in leaves().values()),
    )


def _view(leaf: Leaf, layers: dict[str, Any], running: _Running | None) -> views.SettingView:
    source, value = list(layers.items())[-1]
    pending = ""
    if running is not None:
        layers = {**layers, "run": running.now[leaf.path]}
        if running.over or not leaf.live:
            source, value = "run", running.now[leaf.path]
        elif value != running.now[leaf.path]:
            pending = NEXT[leaf.when]
    return views.SettingView(
        path=leaf.path,
        group=leaf.group,
        kind=leaf.kind,
        choices=leaf.choices,
        range=leaf.range,
        optional=leaf.optional,
        says=leaf.says,
        when=leaf.when,
        read=WHEN[leaf.when],
        value=value,
        source=source,
        layers=layers,
        pending=pending,
    )


def _running(conn: Connection, run: str) -> _Running:
    r, v, st = t.runs.c, t.visits.c, t.steps.c
    row = conn.execute(sa.select(r.settings, r.state).where(r.id == run)).one()
    frozen = RunSettings.thawed(row.settings)
    budget = {"budget": spending(conn, run).limits.model_dump(mode="json")}
    begun = sa.select(v.settings.label("live"), v.started.label("at")).where(v.run_id == run, v.settings.is_not(None))
    tried = (
        sa.select(st.result.label("live"), st.created.label("at"))
        .join(t.visits, v.id == st.visit_id)
        .where(v.run_id == run, st.kind == "settings")
    )
    found = [conn.execute(q.order_by(sa.text("at desc")).limit(1)).first() for q in (begun, tried)]
    last = max((one for one in found if one is not None), key=lambda one: one.at, default=None)
    now = frozen.renewed(last.live or {}) if last is not None else frozen
    return _Running(
        flat(frozen.model_dump(mode="json")),
        flat(now.overlaid(budget).model_dump(mode="json")),
        row.state != "active",
    )


async def change(
    ports: Ports, changes: Mapping[str, Any], *, actor: Actor, project: str = "", ticket: str = "", key: str = ""
) -> views.SettingsView:
    """``changes`` by dotted path: null inherits again, "none" is nothing where nothing is a value. A ticket that runs
    takes only what it reads again. Raises Unprocessable naming each field, Conflict for what is frozen, NotFound."""
    require(actor, Permission.PLAN if project or ticket else Permission.ADMIN)
    _check_paths(changes)
    if not (project or ticket):
        await _change_profile(ports, changes, actor)
        return await show(ports, actor=actor)

    def act(tx: Tx) -> str:
        return _change_ticket(ports, tx, ticket, changes, actor) if ticket else _change_project(
            ports, tx, project, changes, actor
        )  # fmt: skip

    request = {"project": project, "ticket": ticket, "changes": dict(changes)}
    await ports.store.write(
        lambda tx: once(
            tx, key, operation="settings.change", actor=actor, request=request, now=tx.now, act=lambda: act(tx)
        )
    )
    return await show(ports, actor=actor, project=project, ticket=ticket)


def _check_paths(changes: Mapping[str, Any]) -> None:
    if not changes:
        raise Invalid("name at least one setting", code="SET", next="for example build.attempts=3")
    wrong: dict[str, str] = {}
    for path in changes:
        if path not in leaves():
            near = get_close_matches(path, leaves(), n=1)
            wrong[path] = f"no such setting; did you mean {near[0]}?" if near else "no such setting"
    if wrong:
        said = "; ".join(f"{path}: {what}" for path, what in wrong.items())
        raise Unprocessable(
            said,
            code="SETTINGS",
            details={"fields": wrong},
            kept="nothing was changed",
            next="beadmill config show --all",
        )


def patched(layer: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``layer`` with the changes of ``change`` in it."""
    values = flat(layer)
    for path, value in changes.items():
        if value is None:
            values.pop(path, None)
        else:
            values[path] = None if value == NOTHING and leaves()[path].optional else value
    return nested(values)


def _change_project(ports: Ports, tx: Tx, short: str, changes: Mapping[str, Any], actor: Actor) -> str:
    row = project_row(tx.conn, short)
    layer = patched(row.overrides, changes)
    _valid(Cascade.of(ports.profile, layer, None))
    tx.run(sa.update(t.projects).where(t.projects.c.id == row.id).values(overrides=layer))
    tx.emit(Event("project.changed", {"short": short, "settings": sorted(changes)}), actor=actor)
    return short


def _change_ticket(ports: Ports, tx: Tx, key: str, changes: Mapping[str, Any], actor: Actor) -> str:
    row = _rows.ticket_row(tx.conn, key)
    if row.state != TicketState.DRAFT:
        _check_frozen(row, changes)
    layer = patched(row.overrides, changes)
    _valid(Cascade.of(ports.profile, project_row(tx.conn, row.short).overrides, layer))
    tx.run(sa.update(t.tickets).where(t.tickets.c.id == row.id).values(overrides=layer, updated=tx.now))
    tx.emit(Event("ticket.edited", {"fields": ["overrides"], "settings": sorted(changes)}), ticket=key, actor=actor)
    return key


def _check_frozen(row: Any, changes: Mapping[str, Any]) -> None:
    """Raises Conflict."""
    known = leaves()
    frozen = [path for path in changes if not known[path].live]
    if row.state == TicketState.ACTIVE and not frozen:
        return
    budget = any(known[path].when == "gate" for path in frozen)
    said = f"{', '.join(frozen)} cannot be changed any more" if frozen else "its settings are history"
    raise Conflict(
        f"{row.key} is {row.state}: {said}",
        code="FROZEN",
        details={"frozen": frozen, "state": row.state},
        kept="nothing was changed",
        next="a budget is raised at its gate, when it is used up" if budget else "cancel it and write a new ticket",
    )


async def _change_profile(ports: Ports, changes: Mapping[str, Any], actor: Actor) -> None:
    wanted = {path: None if value == NOTHING and leaves()[path].optional else value for path, value in changes.items()}
    try:
        await asyncio.to_thread(ports.profile.write, wanted)
    except ValidationError as error:
        raise bad_settings(error) from error
    await ports.store.write(lambda tx: tx.emit(Event("profile.changed", {"settings": sorted(changes)}), actor=actor))


def _valid(cascade: Cascade) -> None:
    """Raises Unprocessable."""
    try:
        cascade.settings()
    except ValidationError as error:
        raise bad_settings(error) from error
