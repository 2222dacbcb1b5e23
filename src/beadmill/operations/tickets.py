"""Tickets: the work items. A draft is edited freely; a start freezes its settings into a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill import redact
from beadmill import sops as library
from beadmill.domain.machine import Phase, TicketState
from beadmill.domain.values import Actor, Event, Permission
from beadmill.engine.port import Work
from beadmill.errors import Conflict, Invalid, NotFound
from beadmill.operations import _rows, runs, sops, views
from beadmill.operations._cascade import Cascade
from beadmill.operations._discard import Part, check, discard
from beadmill.operations._prompts import frozen
from beadmill.operations._seats import check_models, check_seats
from beadmill.operations.paging import Page, beyond, bounded, cut, decode
from beadmill.operations.ports import Ports
from beadmill.operations.projects import checked_overrides, project_row
from beadmill.operations.receipts import known, once
from beadmill.operations.rules import require
from beadmill.settings import RunSettings
from beadmill.store import tables as t
from beadmill.store.db import Tx
from beadmill.store.journal import runs as journal
from beadmill.store.journal import tickets as made

Sort = Literal["updated", "created", "priority"]
EDITABLE = ("title", "description", "acceptance", "priority", "sop", "overrides")
TITLE = 200
TEXT = 100_000


async def create(
    ports: Ports,
    project: str,
    *,
    title: str,
    actor: Actor,
    description: str = "",
    acceptance: str = "",
    priority: int = 3,
    sop: str = "deliver",
    overrides: Mapping[str, Any] | None = None,
    key: str = "",
) -> views.TicketView:
    """A draft with the next key of the project. Raises Invalid, NotFound, Unprocessable."""
    require(actor, Permission.PLAN)
    fields = {
        "title": title,
        "description": description,
        "acceptance": acceptance,
        "priority": priority,
        "sop": sop,
        "overrides": dict(overrides or {}),
    }
    values = await _checked(ports, fields)
    ticket = await ports.store.write(
        lambda tx: once(
            tx,
            key,
            operation="tickets.create",
            actor=actor,
            request={"project": project, **values},
            now=tx.now,
            act=lambda: _insert(tx, project, values, actor),
        )
    )
    return await show(ports, ticket, actor=actor)


def _insert(tx: Tx, project: str, values: dict[str, Any], actor: Actor) -> str:
    row = project_row(tx.conn, project)
    return made.insert(tx, row.id, project, values, actor=actor)


async def _checked(ports: Ports, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are given, each known to be valid and without secrets of this installation."""
    out: dict[str, Any] = redact.ours().work(dict(fields))
    if "title" in out:
        out["title"] = out["title"].strip()
        if not 1 <= len(out["title"]) <= TITLE:
            raise Invalid(f"a title has 1 to {TITLE} characters", code="TITLE", kept="nothing was changed")
    for name in ("description", "acceptance"):
        if len(out.get(name, "")) > TEXT:
            raise Invalid(f"the {name} is longer than {TEXT} characters", code="TOO_LONG", kept="nothing was changed")
    if not 1 <= out.get("priority", 3) <= 5:
        raise Invalid("the priority is 1 (first) to 5 (last)", code="PRIORITY", kept="nothing was changed")
    if "overrides" in out:
        out["overrides"] = checked_overrides(ports, out["overrides"])
    if "sop" in out:
        await ports.store.read(lambda conn: sops.find(conn, out["sop"]))
    return out


async def listing(
    ports: Ports,
    *,
    actor: Actor,
    project: str = "",
    column: views.Column | None = None,
    state: TicketState | None = None,
    search: str = "",
    sort: Sort = "updated",
    cursor: str = "",
    limit: int | None = None,
) -> Page[views.TicketLine]:
    require(actor, Permission.READ)
    most = bounded(limit)
    order = {
        "updated": (t.tickets.c.updated, True),
        "created": (t.tickets.c.created, True),
        "priority": (t.tickets.c.priority, False),
    }[sort]
    columns = [order, (t.tickets.c.id, True)]
    query = _filtered(project, column, state, search).order_by(*(c.desc() if d else c.asc() for c, d in columns))
    if cursor:
        query = query.where(beyond(columns, decode(cursor, 2)))

    def read(conn: Connection) -> Page[views.TicketLine]:
        rows, after = cut(list(conn.execute(query.limit(most + 1))), most, [sort, "id"])
        return Page(items=tuple(_rows.ticket_lines(conn, rows)), next=after)

    return await ports.store.read(read)


def _filtered(project: str, column: views.Column | None, state: TicketState | None, search: str) -> sa.Select[Any]:
    query = _rows.ticket_query()
    if project:
        query = query.where(t.projects.c.short == project)
    if column:
        query = query.where(_rows.in_column(column))
    if state:
        query = query.where(t.tickets.c.state == state)
    for word in search.split():
        query = query.where(t.tickets.c.title.icontains(word, autoescape=True) | t.tickets.c.key.icontains(word))
    return query


async def show(ports: Ports, ticket: str, *, actor: Actor) -> views.TicketView:
    """The ticket with its runs; the current run is whole. Raises NotFound."""
    require(actor, Permission.READ)
    return await ports.store.read(lambda conn: _view(ports, conn, ticket))


def _view(ports: Ports, conn: Connection, ticket: str) -> views.TicketView:
    row = _rows.ticket_row(conn, ticket)
    line = _rows.ticket_lines(conn, [row])[0]
    query = _rows.run_query().where(t.runs.c.ticket_id == row.id).order_by(t.runs.c.created.desc())
    current = runs.view(conn, row.run_id) if row.run_id else None
    effective = current.settings if current else _settings(ports, conn, row).model_dump(mode="json")
    return views.TicketView(
        **line.model_dump(),
        description=row.description,
        acceptance=row.acceptance,
        overrides=row.overrides,
        effective=effective,
        runs=tuple(_rows.run_line(r) for r in conn.execute(query)),
        current=current,
    )


def _settings(ports: Ports, conn: Connection, row: Any) -> RunSettings:
    project = project_row(conn, row.short)
    return Cascade.of(ports.profile, project.overrides, row.overrides).settings()


async def edit(
    ports: Ports, ticket: str, changes: Mapping[str, Any], *, actor: Actor, key: str = ""
) -> views.TicketView:
    """Only a draft can be edited. Raises Conflict otherwise, Invalid for a field that is not editable."""
    require(actor, Permission.PLAN)
    unknown = sorted(set(changes) - set(EDITABLE))
    if unknown:
        raise Invalid(f"these fields cannot be edited: {', '.join(unknown)}", code="FIELDS", kept="nothing was changed")
    values = await _checked(ports, changes)

    def act(tx: Tx) -> str:
        row = _rows.ticket_row(tx.conn, ticket)
        _draft(row)
        tx.run(sa.update(t.tickets).where(t.tickets.c.id == row.id).values(updated=tx.now, **values))
        tx.emit(Event("ticket.edited", {"fields": sorted(values)}), ticket=ticket, actor=actor)
        return ticket

    request = {"ticket": ticket, **values}
    await ports.store.write(
        lambda tx: once(
            tx, key, operation="tickets.edit", actor=actor, request=request, now=tx.now, act=lambda: act(tx)
        )
    )
    return await show(ports, ticket, actor=actor)


def _draft(row: Any) -> None:
    if row.state != TicketState.DRAFT:
        raise Conflict(
            f"{row.key} is {row.state}; only a draft can be edited or started",
            code="NOT_DRAFT",
            details={"state": row.state, "status": row.status},
            kept="nothing was changed",
            next=f"beadmill run rerun {row.key} <node>"
            if row.state == TicketState.CANCELED and row.run_id
            else f"beadmill ticket show {row.key}",
        )


# --- start --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Plan:
    """Everything a start needs, read before the write."""

    ticket: Any
    run: str
    sop: sops.Found
    settings: RunSettings
    work: Work


async def start(ports: Ports, ticket: str, *, actor: Actor, key: str = "") -> views.TicketView:
    """Freezes settings, SOP and work into a run and lets the engine go.

    One transaction: what fails leaves the draft as it is, to be started again. Raises Conflict when the ticket is no
    draft (any more), Invalid when the council has too few seats, unknown agents or models, Unavailable when the wanted
    sandbox does not work here.
    """
    require(actor, Permission.RUN)
    what, request = "tickets.start", {"ticket": ticket}
    done = await ports.store.read(lambda conn: known(conn, key, operation=what, actor=actor, request=request))
    if done is not None:
        return await show(ports, ticket, actor=actor)
    wanted = await ports.store.read(lambda conn: _plan(ports, conn, ticket).settings)
    await check_models(ports, wanted)
    chosen = await ports.choose(wanted.sandbox, wanted.network, image=wanted.sandbox_image)

    def act(tx: Tx) -> str:
        plan = _plan(ports, tx.conn, ticket)
        if (plan.settings.sandbox, plan.settings.sandbox_image) == (
            wanted.sandbox,
            wanted.sandbox_image,
        ):  # somebody who changed it in between gets what they set
            plan = replace(plan, settings=plan.settings.overlaid({"sandbox": chosen.name}))
        _begin(tx, replace(plan, work=replace(plan.work, prompts=frozen(ports, tx))), actor)
        return plan.run

    await ports.store.write(
        lambda tx: once(tx, key, operation=what, actor=actor, request=request, now=tx.now, act=lambda: act(tx))
    )
    ports.engine.ring()
    return await show(ports, ticket, actor=actor)


def _plan(ports: Ports, conn: Connection, ticket: str) -> _Plan:
    row = _rows.ticket_row(conn, ticket)
    _draft(row)
    project = project_row(conn, row.short)
    if project.path is None:
        raise Conflict(
            f"{row.short} has no repository any more", code="NO_REPOSITORY", next="beadmill project add <path>"
        )
    settings = _settings(ports, conn, row)
    sop = sops.find(conn, row.sop)
    library.checked(sop.body, name=sop.name, specs=ports.kinds)
    check_seats(ports, settings, sop.sop.graph.nodes.values(), project=row.short)
    count = conn.execute(
        sa.select(sa.func.count()).select_from(t.runs).where(t.runs.c.ticket_id == row.id)
    ).scalar_one()
    work = Work(
        key=row.key,
        title=row.title,
        description=row.description,
        acceptance=row.acceptance,
        project=row.short,
        repository=project.path,
        workspace=str(ports.settings.workspace_root / row.short / row.key),
        branch=f"beadmill/{row.key}",
        base=project.base,
        forge=project.forge,
        remote=project.remote,
    )
    return _Plan(row, f"{row.key}-r{count + 1}", sop, settings, work)


def _begin(tx: Tx, plan: _Plan, actor: Actor) -> None:
    journal.start(
        tx,
        run=plan.run,
        ticket_id=plan.ticket.id,
        project_id=plan.ticket.project_id,
        sop=plan.sop.name,
        body=plan.sop.body,
        graph=plan.sop.sop.graph,
        settings=plan.settings.model_dump(mode="json"),
        work=asdict(plan.work),
        actor=actor,
    )


# --- cancel -------------------------------------------------------------------------------------------------------
async def cancel(
    ports: Ports, ticket: str, *, actor: Actor, reason: str = "", delete: Sequence[Part] = ()
) -> views.TicketView:
    """Fences the run, proves that nothing of it is left running, then says canceled. Everything is kept but what
    ``delete`` names: ``content`` (worktrees and workspace; commits and drafts stay behind refs), ``log`` (of sessions),
    ``ticket`` (one that never ran). A canceled ticket can be canceled again to delete more.

    Raises Conflict when the ticket has ended already by something else, or not everything could be deleted.
    """
    require(actor, Permission.ADMIN if delete else Permission.RUN)
    await ports.store.read(lambda conn: check(conn, ticket, delete))
    view = await _cancel(ports, ticket, actor=actor, reason=reason)
    if delete:
        await discard(ports, ticket, delete, actor=actor)
    return view


async def _cancel(ports: Ports, ticket: str, *, actor: Actor, reason: str) -> views.TicketView:
    row = await ports.store.read(lambda conn: _rows.ticket_row(conn, ticket))
    if row.state == TicketState.COMPLETED:
        raise Conflict(f"{ticket} is completed", code="ENDED", kept="everything", next=f"beadmill ticket show {ticket}")
    if row.state == TicketState.CANCELED:
        return await show(ports, ticket, actor=actor)
    if row.run_id is not None:
        await runs.stop_and_cancel(ports, row.run_id, actor=actor, reason=reason)
    else:
        await ports.store.write(lambda tx: _canceled(tx, ticket, actor, reason))
    return await show(ports, ticket, actor=actor)


def _canceled(tx: Tx, ticket: str, actor: Actor, reason: str) -> None:
    moved = tx.run(
        sa.update(t.tickets)
        .where(t.tickets.c.key == ticket, t.tickets.c.state == TicketState.DRAFT)
        .values(state=TicketState.CANCELED, status=Phase.CANCELED, updated=tx.now)
    )
    if moved.rowcount == 1:
        tx.emit(Event("ticket.canceled", {"reason": reason}), ticket=ticket, actor=actor)


async def current_run(ports: Ports, ticket: str) -> str:
    """The run of a ticket. Raises NotFound when it has not started."""
    row = await ports.store.read(lambda conn: _rows.ticket_row(conn, ticket))
    if row.run_id is None:
        raise NotFound(f"{ticket} has not started", code="NO_RUN", next=f"beadmill ticket start {ticket}")
    return str(row.run_id)
