"""Projects, settings of the installation, and signing out."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from beadmill.artifacts.yaml import dump
from beadmill.errors import BeadmillError
from beadmill.operations import agents, councils, logins, projects, settings, status, views
from beadmill.operations.settings import patched
from beadmill.web.pages.forms import Posted, posted
from beadmill.web.pages.screen import On, PageRoute, Screen, back
from beadmill.web.pages.setting_fields import changes, groups
from beadmill.web.pages.words import _
from beadmill.web.plain import plain

router = APIRouter(route_class=PageRoute, include_in_schema=False)
FIELDS = ("path", "name", "short", "base", "forge", "forge_url")


@router.get("/projects")
async def listing(on: On) -> Response:
    return await _listing(on, {})


async def _listing(on: Screen, given: Mapping[str, str], *, error: BeadmillError | None = None) -> Response:
    found = await projects.listing(on.ports, actor=on.actor, limit=200)
    code = error.status if error else 200
    return await on.page("projects.html", status=code, projects=found.items, given=given, error=error)


@router.post("/projects")
async def add(on: On) -> Response:
    """Attaches a repository. Refused, the same form says why, each problem with its way out."""
    form = await posted(on.request)
    given = {name: form.get(name).strip() for name in FIELDS}
    try:
        project = await projects.add(
            on.ports,
            given["path"],
            name=given["name"],
            short=given["short"],
            base=given["base"],
            forge=given["forge"],
            forge_url=given["forge_url"],
            actor=on.actor,
            key=form.get("key"),
        )
    except BeadmillError as error:
        if form.get("from") == "welcome":
            found = await agents.listing(on.ports, actor=on.actor)
            return await on.page("welcome.html", status=error.status, agents=found, given=given, error=error)
        return await _listing(on, given, error=error)
    return back(f"/projects/{project.short}?fresh=1")


@router.get("/projects/{short}")
async def show(on: On, short: str, fresh: int = 0) -> Response:
    project = await projects.show(on.ports, short, actor=on.actor)
    return await _show(on, project, fresh=bool(fresh))


async def _show(
    on: Screen,
    project: views.ProjectView,
    *,
    fresh: bool = False,
    given: Posted | None = None,
    error: BeadmillError | None = None,
) -> Response:
    view = await settings.show(on.ports, project=project.short, actor=on.actor)
    return await on.page(
        "project.html",
        status=error.status if error else 200,
        project=project,
        fresh=fresh,
        setting_groups=groups(view, "project", given, error),
        agents=on.ports.agents.names(),
        error=error,
    )


@router.get("/projects/{short}/council")
async def council(on: On, short: str) -> Response:
    """What the seats achieved in the councils of the project."""
    return await on.page("council_record.html", record=await councils.record(on.ports, short, actor=on.actor))


@router.post("/projects/{short}")
async def change(on: On, short: str) -> Response:
    form = await posted(on.request)
    try:
        view = await settings.show(on.ports, project=short, actor=on.actor)
        before = await projects.show(on.ports, short, actor=on.actor)
        await projects.change(
            on.ports,
            short,
            name=form.get("name") or None,
            base=form.get("base") or None,
            forge=form.get("forge") if "forge" in form.fields else None,
            forge_url=form.get("forge_url").strip() if "forge_url" in form.fields else None,
            overrides=patched(before.overrides, changes(form, view, "project")),
            actor=on.actor,
            key=form.get("key"),
        )
    except BeadmillError as error:
        return await _show(on, await projects.show(on.ports, short, actor=on.actor), given=form, error=error)
    return back(f"/projects/{short}")


@router.post("/projects/{short}/remove")
async def remove(on: On, short: str) -> Response:
    await projects.remove(on.ports, short, actor=on.actor)
    return back("/projects")


# --- installation -------------------------------------------------------------------------------------------------
@router.get("/settings")
async def house(on: On) -> Response:
    return await _house(on)


async def _house(on: Screen, *, given: Posted | None = None, error: BeadmillError | None = None) -> Response:
    config = await status.config(on.ports, actor=on.actor)
    values = {name: v for name, v in config.values.items() if name != "defaults"}
    texts = {name: dump(v) if isinstance(v, dict | list) else str(v) for name, v in values.items()}
    health = await status.show(on.ports, actor=on.actor)
    view = await settings.show(on.ports, actor=on.actor)
    return await on.page(
        "settings.html",
        status=error.status if error else 200,
        texts=texts,
        sources=config.sources,
        status_=health,
        view=view,
        setting_groups=groups(view, "file", given, error),
        agents=on.ports.agents.names(),
        error=error,
    )


@router.post("/settings")
async def set_house(on: On) -> Response:
    """Writes config.toml."""
    form = await posted(on.request)
    try:
        wanted = changes(form, await settings.show(on.ports, actor=on.actor), "file")
        if wanted:
            await settings.change(on.ports, wanted, actor=on.actor)
    except BeadmillError as error:
        return await _house(on, given=form, error=error)
    return back("/settings")


@router.post("/leave")
async def leave(on: On) -> Response:
    """Signs this browser out."""
    door = on.request.app.state.web.door
    session = on.request.cookies.get(door.cookie)
    if session:
        await logins.leave(on.ports, session)
    again = f"<p>{_('To sign in again, run')} <code>beadmill open</code></p>"
    answer = HTMLResponse(plain(_("Signed out"), again))
    answer.delete_cookie(door.cookie, path="/", httponly=True, samesite="strict")
    return answer
