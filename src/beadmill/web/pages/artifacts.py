"""One document on the screen: as people read it, edited as a form or as text, and against an earlier version."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.errors import BeadmillError, Stale, Unprocessable
from beadmill.operations import artifacts, drafts, sessions, views
from beadmill.web.pages.editing import desk as desks
from beadmill.web.pages.editing.desk import Desk
from beadmill.web.pages.editing.fields import FORMS
from beadmill.web.pages.editing.form import Read, act, bare
from beadmill.web.pages.forms import Posted, posted
from beadmill.web.pages.screen import On, PageRoute, Screen, back

router = APIRouter(route_class=PageRoute, include_in_schema=False)
APPROVE = "approve"  # save and approve in one action, for what was approved before


@router.get("/artifacts/{row}")
async def show(on: On, row: int, against: int | None = None, edit: str = "", resume: int = 0) -> Response:
    if edit:
        return await _editor(on, await desks.opened(on, row, edit, resume=bool(resume)))
    found = await artifacts.show(on.ports, row, actor=on.actor)
    versions = await desks.versions_of(on, found)
    earlier = [line.row for line in versions if line.version < found.version]
    other = against if against is not None else (earlier[-1] if earlier else None)
    same = views.DiffView(row=row, against=None, diff="")
    return await on.page(
        "artifact.html",
        document=found,
        versions=versions,
        by_hand=by_hand(versions),
        offers=await desks.offered(on, versions),
        forms=FORMS,
        compared=await artifacts.diff(on.ports, row, against=other, actor=on.actor) if other else same,
        **await _place(on, found),
    )


def by_hand(versions: Sequence[views.ArtifactLine]) -> frozenset[int]:
    """Versions that a person made of what agents had written."""
    agents = [v.version for v in versions if not v.author.startswith("user:")]
    return frozenset(v.row for v in versions if v.author.startswith("user:") and agents and agents[0] < v.version)


async def _place(on: Screen, found: views.ArtifactLine) -> dict[str, Any]:
    ticket = await sessions.ticket_of_run(on.ports, found.run)
    return {"ticket_key": ticket, "topics": f"ticket:{ticket}" if ticket else "board"}


async def _editor(on: Screen, desk: Desk) -> Response:
    return await on.page(
        "artifact_edit.html",
        status=desk.error.status if desk.error else 422 if desk.wrong else 200,
        desk=desk,
        document=desk.document,
        fields=FORMS.get(desk.document.kind, ()),
        by_hand=by_hand(desk.versions),
        edits=(await artifacts.show(on.ports, desk.over.row, actor=on.actor)).edits,
        **await _place(on, desk.document),
    )


# --- as text ------------------------------------------------------------------------------------------------------
@router.post("/artifacts/{row}")
async def save(on: On, row: int) -> Response:
    """A new version; the gate that shows it shows the new one. What was typed stays on a page that says what is wrong."""
    form = await posted(on.request)
    given = _with(form, text=desks.merged(form))
    if form.get("act") == "check":
        checked = await artifacts.check(on.ports, row, text=given.get("text"), actor=on.actor)
        return await _editor(on, await desks.again(on, row, "text", given, problems=_listed(checked), checked=True))
    try:
        new = await _saved(on, row, form, text=given.get("text"))
    except BeadmillError as error:
        problems = tuple(error.details.get("problems", ()))
        return await _editor(on, await desks.again(on, row, "text", given, error=error, problems=problems))
    return await _left(on, row, form, new)


def _with(form: Posted, *, text: str) -> Posted:
    kept = {n: v for n, v in form.fields.items() if not n.startswith(("line.", "was."))}
    return Posted(kept | {"text": (text,)})


def _listed(checked: views.CheckedView) -> tuple[dict[str, Any], ...]:
    return tuple(problem.model_dump() for problem in checked.problems)


async def _saved(on: Screen, row: int, form: Posted, **what: Any) -> views.EditedView:
    """Over the version that the person has seen: the one that was opened, or a newer one that the page compared."""
    over = int(form.get("over")) if form.get("over").isdecimal() else row
    what |= {"approve": form.get("act") == APPROVE, "note": form.get("note"), "key": form.get("key")}
    return await artifacts.edit(on.ports, over, etag=form.get("etag") or None, actor=on.actor, **what)


async def _left(on: Screen, row: int, form: Posted, new: views.EditedView) -> Response:
    """The draft goes with the save; one with other words, which another window wrote meanwhile, stays and is offered."""
    now = desks.draft_of(await drafts.show(on.ports, str(row), actor=on.actor), 0)
    same = all(form.all(name) == value for name, value in now.given.fields.items())
    known = form.get("revision") == str(now.revision) and not form.get("held")
    if now.revision and (same or known):
        with suppress(Stale):
            await drafts.discard(on.ports, str(row), revision=now.revision, actor=on.actor)
    return back(form.get("back"), f"/artifacts/{new.row}")


@router.post("/artifacts/{row}/check")
async def check(on: On, row: int) -> Response:
    """What the page says below the text while somebody types. Nothing is saved."""
    form = await posted(on.request)
    given = _with(form, text=desks.merged(form))
    checked = await artifacts.check(on.ports, row, text=given.get("text"), actor=on.actor)
    desk = await desks.again(on, row, "text", given, compare=False, problems=_listed(checked), checked=True)
    return on.part("artifact_problems.html", desk=desk)


# --- as a form ----------------------------------------------------------------------------------------------------
@router.post("/artifacts/{row}/form")
async def save_form(on: On, row: int) -> Response:
    """Saves, or adds, removes and moves an item and saves nothing."""
    given = await posted(on.request)
    desk = await desks.again(on, row, "form", given)
    wish = given.get("act")
    if wish and wish not in ("save", APPROVE):
        changed, fresh = act(desk.document.kind, given, wish)
        return await _changed(on, await desks.again(on, row, "form", changed, fresh=fresh))
    made = desks.read_form(desk)
    error: BeadmillError | None = None
    problems: tuple[Any, ...] = ()
    try:
        if not made.wrong:
            return await _left(on, row, given, await _saved(on, row, given, document=made.value))
        problems = _listed(await artifacts.check(on.ports, row, document=made.value, actor=on.actor))
    except Unprocessable as refused:  # told by the form itself
        problems = tuple(refused.details.get("problems", ()))
    except BeadmillError as refused:
        error = refused
    more = _at_their_fields(made, problems)
    return await _editor(on, await desks.again(on, row, "form", given, error=error, **more))


def _at_their_fields(made: Read, problems: Sequence[Any]) -> dict[str, Any]:
    """What is wrong by the name of its field, and the problems that no field of the form is about."""
    wrong, rest = dict(made.wrong), []
    for one in problems:
        name = made.name_of(one["path"], one["reason"])
        if not name:
            rest.append(one)
        elif not any(n.startswith(f"{name.rpartition('.')[0]}.") for n in made.wrong if name.endswith(".line")):
            wrong.setdefault(name, bare(one["path"], one["reason"]))
    return {"problems": tuple(rest), "wrong": wrong}


async def _changed(on: Screen, desk: Desk) -> Response:
    if not on.live:
        return await _editor(on, desk)
    return on.part("doc/form.html", desk=desk, document=desk.document, fields=FORMS[desk.document.kind])


@router.post("/artifacts/{row}/discard")
async def discard(on: On, row: int) -> Response:
    """Forgets unsaved words. Raises Stale when another window saved in between."""
    form = await posted(on.request)
    await drafts.discard(on.ports, str(row), revision=int(form.get("revision") or 0), actor=on.actor)
    return back(form.get("back"), f"/artifacts/{row}")
