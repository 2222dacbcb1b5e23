"""Manual QA on the screen: one form for the whole checklist, saved while it is filled in, files beside each item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from beadmill.errors import BeadmillError, Conflict, Invalid
from beadmill.operations import gates, qa, tickets, views
from beadmill.web.pages.forms import Posted, posted
from beadmill.web.pages.screen import On, PageRoute, Screen, back

router = APIRouter(route_class=PageRoute, include_in_schema=False)
TEXTS = ("note", "observation", "reason", "group")


@router.get("/tickets/{key}/qa")
async def show(on: On, key: str) -> Response:
    return await _page(on, key)


async def _page(
    on: Screen, key: str, *, given: Mapping[str, Any] | None = None, error: BeadmillError | None = None
) -> Response:
    """``given`` are results that were sent and refused: they stand in the form instead of the saved ones."""
    view = await qa.show(on.ports, key, actor=on.actor)
    ticket = await tickets.show(on.ports, key, actor=on.actor)
    results = {one["item"]: one | {"links": _lines(one["links"])} for one in view.results}
    for name, one in (given or {}).items():
        if name in results:
            results[name] = results[name] | one | {"links": _lines(one["links"])}
    return await on.page(
        "qa/page.html",
        status=error.status if error else 200,
        topics=f"ticket:{key}",
        qa=view,
        ticket=ticket,
        results=results,
        kept=given is not None,
        error=error,
    )


def _lines(links: Any) -> str:
    return "\n".join(f"{one['url']} {one.get('details', '')}".strip() for one in links)


@router.get("/tickets/{key}/qa/files/{item}")
async def files(on: On, key: str, item: str) -> Response:
    """The files of one item, to be put into the page."""
    view = await qa.show(on.ports, key, actor=on.actor)
    return on.part("qa/files.html", qa=view, item=item)


@router.post("/tickets/{key}/qa/draft")
async def draft(on: On, key: str) -> Response:
    """Saves the form while it is filled in; answers with the new revision, or the error's envelope."""
    form = await posted(on.request)
    try:
        view = await _save(on, key, form)
    except BeadmillError as error:
        return JSONResponse(error.envelope(), error.status)
    return JSONResponse({"revision": view.revision, "problems": list(view.problems), "counts": view.counts})


async def _save(on: Screen, key: str, form: Posted) -> views.QaView:
    return await qa.save(on.ports, key, results_of(form), revision=_revision(form), actor=on.actor)


def _revision(form: Posted) -> int:
    text = form.get("revision")
    if not text.isdecimal():
        raise Invalid("the form does not say which revision it was made for", code="REVISION", kept="your input")
    return int(text)


@router.post("/tickets/{key}/qa")
async def decide(on: On, key: str) -> Response:
    """The form as it stands at the click is saved, then sent, or the rest is skipped."""
    form = await posted(on.request)
    etag, once = form.get("etag") or None, form.get("key")
    try:
        view = await _save(on, key, form)
        if form.get("choice") == "skip":
            reason = form.get("skip.reason")
            await qa.skip(on.ports, key, etag=etag, revision=view.revision, reason=reason, actor=on.actor, key=once)
        else:
            await qa.submit(on.ports, key, etag=etag, revision=view.revision, actor=on.actor, key=once)
    except BeadmillError as error:
        return await _page(on, key, given=results_of(form), error=error)
    return back(f"/tickets/{key}")


@router.post("/tickets/{key}/qa/drift")
async def drift(on: On, key: str) -> Response:
    """What becomes of changes in the worktree: the ticked ones are taken along, or everything is discarded."""
    form = await posted(on.request)
    view = await qa.show(on.ports, key, actor=on.actor)
    if view.drift is None:
        raise Conflict("nothing of the worktree waits for a decision", code="NO_DRIFT", kept="the worktree")
    choice = form.get("choice")
    payload = {"paths": list(form.all("path"))} if choice == "include" and form.get("some") else None
    etag, once = form.get("etag") or None, form.get("key")
    await gates.answer(on.ports, view.drift.id, choice, etag=etag, payload=payload, actor=on.actor, key=once)
    return back(f"/tickets/{key}")


# --- the form as results --------------------------------------------------------------------------------------------
def results_of(form: Posted) -> dict[str, dict[str, Any]]:
    """Item id → its result; ``r.<item>.<field>`` are the names of the fields."""
    items = [name.split(".")[1] for name in form.fields if name.startswith("r.") and name.endswith(".here")]
    return {item: _result(form, f"r.{item}") for item in items}


def _result(form: Posted, name: str) -> dict[str, Any]:
    outcome = form.get(f"{name}.outcome", "pending")
    found: dict[str, Any] = {field: form.get(f"{name}.{field}").strip() for field in TEXTS}
    found["outcome"] = outcome
    found["group"] = found["group"] if outcome == "fail" else ""
    found["links"] = [_link(line) for line in form.get(f"{name}.links").splitlines() if line.strip()]
    improvement = {field: form.get(f"{name}.improvement.{field}").strip() for field in ("title", "description")}
    priority = form.get(f"{name}.improvement.priority", "3")
    manual_qa = form.get(f"{name}.improvement.manual_qa", "auto")
    if any(improvement.values()):
        found["improvement"] = {**improvement, "priority": priority, "manual_qa": manual_qa}
    return found


def _link(line: str) -> dict[str, str]:
    url, _, details = line.strip().partition(" ")
    return {"url": url, "details": details.strip()}
