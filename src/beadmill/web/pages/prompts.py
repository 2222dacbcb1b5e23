"""Prompts on the screen: what each is for, its text to edit, the difference to the built-in one, the assembled prompt."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.errors import BeadmillError
from beadmill.operations import prompts, runs
from beadmill.web.pages.forms import posted
from beadmill.web.pages.screen import On, PageRoute, Screen, back

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ALL = "/settings/prompts"


@router.get(ALL)
async def listing(on: On) -> Response:
    found = await prompts.listing(on.ports, actor=on.actor)
    stages = [(stage, list(lines)) for stage, lines in groupby(found.prompts, key=lambda line: line.stage)]
    return await on.page("prompts.html", prompts=found, stages=stages)


@router.post(f"{ALL}/reset")
async def reset(on: On) -> Response:
    form = await posted(on.request)
    await prompts.reset(on.ports, actor=on.actor, key=form.get("key"))
    return back(ALL)


@router.get(f"{ALL}/{{name}}")
async def show(on: On, name: str) -> Response:
    return await _page(on, name)


@router.post(f"{ALL}/{{name}}")
async def save(on: On, name: str) -> Response:
    """What was typed stays on a page that says what is wrong."""
    form = await posted(on.request)
    text, etag = form.get("text"), form.get("etag") or None
    try:
        await prompts.save(on.ports, name, text, etag=etag, actor=on.actor, key=form.get("key"))
    except BeadmillError as error:
        return await _page(on, name, text=text, error=error)
    return back(f"{ALL}/{name}")


@router.post(f"{ALL}/{{name}}/preview")
async def preview(on: On, name: str) -> Response:
    """Nothing is saved; the page comes back with the text as typed and the whole prompt below."""
    form = await posted(on.request)
    text, run = form.get("text"), form.get("run").strip()
    try:
        made = await prompts.preview(on.ports, name, text=text, run=run, actor=on.actor)
    except BeadmillError as error:
        return await _page(on, name, text=text, run=run, error=error)
    return await _page(on, name, text=text, run=run, etag=form.get("etag"), made=made)


@router.post(f"{ALL}/{{name}}/revert")
async def revert(on: On, name: str) -> Response:
    form = await posted(on.request)
    etag = form.get("etag") or None
    await prompts.revert(on.ports, name, etag=etag, actor=on.actor, key=form.get("key"))
    return back(f"{ALL}/{name}")


async def _page(
    on: Screen,
    name: str,
    *,
    text: str | None = None,
    run: str = "",
    etag: str = "",
    made: Any = None,
    error: BeadmillError | None = None,
) -> Response:
    """After a refusal the form saves over what is stored now, which the page shows; after a preview over what it had."""
    found = await prompts.show(on.ports, name, actor=on.actor)
    known = await runs.listing(on.ports, actor=on.actor, limit=20)
    return await on.page(
        "prompt.html",
        status=error.status if error else 200,
        prompt=found,
        text=found.text if text is None else text,
        etag=etag or found.sha256,
        run=run,
        runs=[line.id for line in known.items],
        made=made,
        error=error,
    )
