"""Tickets on the screen: a new one, a draft, and the page of a ticket with its panes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.errors import BeadmillError
from beadmill.leaves import leaves
from beadmill.operations import (
    beads,
    events,
    gates,
    occurrences,
    projects,
    runs,
    sessions,
    settings,
    sops,
    tickets,
    trail,
    undo,
    views,
)
from beadmill.operations.settings import patched
from beadmill.web.pages import forms
from beadmill.web.pages.forms import Posted, posted
from beadmill.web.pages.gates import shown
from beadmill.web.pages.screen import On, PageRoute, Screen, back
from beadmill.web.pages.setting_fields import changes, groups, text

router = APIRouter(route_class=PageRoute, include_in_schema=False)
LOOK_BACK = 400  # sequence numbers in which the last events of a ticket are looked for
DELETABLE: tuple[Literal["content", "log"], ...] = ("content", "log")
SILENT = frozenset({"visit.phase"})  # the ticket's status says the same a moment later


# --- a new ticket and a draft -------------------------------------------------------------------------------------
@router.get("/tickets/new")
async def new(on: On) -> Response:
    """Asked again by the form itself when another project is chosen: then with everything typed so far."""
    return await _new(
        on, Posted({name: tuple(on.request.query_params.getlist(name)) for name in on.request.query_params})
    )


async def _new(on: Screen, given: Posted, *, error: BeadmillError | None = None) -> Response:
    known = await projects.listing(on.ports, actor=on.actor, limit=200)
    attached = tuple(p for p in known.items if p.repository)
    return await on.page(
        "ticket/new.html",
        status=error.status if error else 200,
        projects=attached,
        error=error,
        **await _form(on, given, await _inherited(on, _chosen(attached, given.get("project"))), error),
    )


def _chosen(known: Sequence[views.ProjectView], short: str) -> views.ProjectView | None:
    return next((p for p in known if p.short == short), known[0] if known else None)


async def _inherited(on: Screen, project: views.ProjectView | None) -> views.SettingsView:
    return await settings.show(on.ports, project=project.short if project else "", actor=on.actor)


async def _form(
    on: Screen, given: Posted, view: views.SettingsView, error: BeadmillError | None = None
) -> dict[str, Any]:
    """What the fields of a ticket need: the SOPs, and each setting with what it would inherit from where."""
    return {
        "given": given,
        "sops": await sops.listing(on.ports, actor=on.actor),
        "agents": on.ports.agents.names(),
        "setting_groups": groups(view, "ticket", given, error),
    }


@router.post("/tickets")
async def create(on: On) -> Response:
    form = await posted(on.request)
    try:
        project = await projects.show(on.ports, form.get("project"), actor=on.actor)
        fields = _fields(form, {}, await _inherited(on, project))
        ticket = await tickets.create(on.ports, project.short, actor=on.actor, key=form.get("key"), **fields)
        if form.get("start"):
            ticket = await tickets.start(on.ports, ticket.key, actor=on.actor)
    except BeadmillError as error:
        return await _new(on, form, error=error)
    return back(f"/tickets/{ticket.key}")


def _fields(form: Posted, before: Mapping[str, Any], view: views.SettingsView) -> dict[str, Any]:
    return {
        "title": form.get("title"),
        "description": form.get("description"),
        "acceptance": form.get("acceptance"),
        "priority": int(form.get("priority", "3")) if form.get("priority", "3").isdecimal() else 0,
        "sop": form.get("sop", "deliver"),
        "overrides": patched(before, changes(form, view, "ticket")),
    }


@router.post("/tickets/{key}/edit")
async def edit(on: On, key: str) -> Response:
    form = await posted(on.request)
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    try:
        view = await settings.show(on.ports, ticket=key, actor=on.actor)
        fields = _fields(form, ticket.overrides, view)
        await tickets.edit(on.ports, key, fields, actor=on.actor, key=form.get("key"))
        if form.get("start"):
            await tickets.start(on.ports, key, actor=on.actor)
    except BeadmillError as error:
        return await _now(on, ticket, given=form, error=error)
    return back(f"/tickets/{key}")


@router.get("/tickets/{key}/settings")
async def what_is_set(on: On, key: str) -> Response:
    return await _settings(on, key)


async def _settings(
    on: Screen, key: str, *, given: Posted | None = None, error: BeadmillError | None = None
) -> Response:
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    view = await settings.show(on.ports, ticket=key, actor=on.actor)
    live = view.model_copy(update={"settings": tuple(one for one in view.settings if leaves()[one.path].live)})
    return await on.page(
        "ticket/settings.html",
        status=error.status if error else 200,
        view=view,
        setting_groups=groups(live, "ticket", given, error),
        agents=(),
        error=error,
        said=text,
        **frame(ticket, "settings"),
    )


@router.post("/tickets/{key}/settings")
async def set_(on: On, key: str) -> Response:
    """What a run reads again."""
    form = await posted(on.request)
    try:
        view = await settings.show(on.ports, ticket=key, actor=on.actor)
        wanted = changes(form, view, "ticket")
        if wanted:
            await settings.change(on.ports, wanted, ticket=key, actor=on.actor, key=form.get("key"))
    except BeadmillError as error:
        return await _settings(on, key, given=form, error=error)
    return back(f"/tickets/{key}/settings")


# --- acts ---------------------------------------------------------------------------------------------------------
@router.post("/tickets/{key}/cancel")
async def cancel(on: On, key: str) -> Response:
    form = await posted(on.request)
    delete = [part for part in DELETABLE if form.get(f"delete-{part}")]
    await tickets.cancel(on.ports, key, actor=on.actor, reason=form.get("reason"), delete=delete)
    return back(f"/tickets/{key}")


@router.post("/tickets/{key}/{act}")
async def act(on: On, key: str, act: str) -> Response:
    """pause, resume, ask-again (what waits for a provider), rerun of the ticket's current run."""
    form = await posted(on.request)
    run, once = await tickets.current_run(on.ports, key), form.get("key")
    match act:
        case "pause":
            await runs.pause(on.ports, run, now=bool(form.get("now")), actor=on.actor, key=once)
        case "resume":
            await runs.resume(on.ports, run, actor=on.actor, key=once)
        case "ask-again":
            await runs.retry(on.ports, run, actor=on.actor, key=once)
        case "rerun":
            await runs.rerun(on.ports, run, form.get("node"), comment=form.get("comment"), actor=on.actor, key=once)
        case _:
            return back(f"/tickets/{key}")
    return back(f"/tickets/{key}")


# --- the page -----------------------------------------------------------------------------------------------------
def frame(ticket: views.TicketView, pane: str, *, node: str = "") -> dict[str, Any]:
    """What the head, the rail and the side of every pane need."""
    return {
        "ticket": ticket,
        "run": ticket.current,
        "pane": pane,
        "node": node,
        "topics": f"ticket:{ticket.key},board",
        "seats": [forms.seat(one) for one in ticket.effective["council"]["seats"]],
    }


@router.get("/tickets/{key}")
async def now(on: On, key: str) -> Response:
    return await _now(on, await tickets.show(on.ports, key, actor=on.actor))


async def _now(
    on: Screen, ticket: views.TicketView, *, given: Posted | None = None, error: BeadmillError | None = None
) -> Response:
    values = frame(ticket, "now")
    run = ticket.current
    if run is None:
        view = await settings.show(on.ports, ticket=ticket.key, actor=on.actor)
        values |= await _form(on, given or _as_posted(ticket), view, error)
        return await on.page("ticket/draft.html", status=error.status if error else 200, error=error, **values)
    live = await sessions.listing(on.ports, actor=on.actor, run=run.id, live=True)
    plan = await beads.listing(on.ports, run.id, actor=on.actor) if run.beads.total else ()
    return await on.page(
        "ticket/now.html",
        open_gates=() if on.live else await _open(on, run),
        sessions=live.items,
        beads_=plan,
        events=await _events(on, ticket.key, run.seq, 12),
        error=error,
        **values,
    )


async def _open(on: Screen, run: views.RunView) -> tuple[Any, ...]:
    found = [await gates.show(on.ports, line.id, actor=on.actor) for line in run.gates]
    return tuple([await shown(on.ports, gate, actor=on.actor) for gate in found])


def _as_posted(ticket: views.TicketView) -> Posted:
    fields = ("title", "description", "acceptance", "priority", "sop", "project")
    return Posted({name: (str(getattr(ticket, name)),) for name in fields})


async def _events(on: Screen, key: str, seq: int, most: int) -> list[views.EventView]:
    """The newest first."""
    topics = [f"ticket:{key}"]
    page = await events.since(on.ports, topics=topics, seq=max(0, seq - LOOK_BACK), actor=on.actor)
    return [event for event in reversed(page.events) if event.kind not in SILENT][:most]


@router.get("/tickets/{key}/gates")
async def open_gates(on: On, key: str) -> Response:
    """The gates of the ticket as they stand now, for the place where they are answered."""
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    found = await _open(on, ticket.current) if ticket.current else ()
    return await on.page("gate/region.html", open_gates=found, back_to=f"/tickets/{key}")


@router.get("/tickets/{key}/history")
async def history(on: On, key: str) -> Response:
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    seq = ticket.current.seq if ticket.current else 0
    found = await _events(on, key, max(seq, LOOK_BACK), 200)
    receipts = (await trail.listing(on.ports, ticket=key, actor=on.actor)).lines
    stops = [
        one for run in reversed(ticket.runs) for one in await occurrences.listing(on.ports, run.id, actor=on.actor)
    ]
    seen = frame(ticket, "history")
    kept = await _kept(on, key)
    return await on.page("ticket/history.html", events=found, trail=receipts[::-1], stops=stops, kept=kept, **seen)


async def _kept(on: Screen, key: str) -> tuple[views.UndoLine, ...]:
    """None where the repository is not there any more: the history is readable without it."""
    try:
        return await undo.listing(on.ports, key, actor=on.actor)
    except BeadmillError:
        return ()
