from __future__ import annotations

from fastapi import APIRouter

from beadmill.operations import prompts, views
from beadmill.web.api.common import Body, IfMatch, InPorts, Key, Who, route

router = APIRouter()


class Text(Body):
    text: str


class Wanted(Body):
    """``text`` None = what is stored; ``run`` "" = sample material."""

    text: str | None = None
    run: str = ""


@route(router, "prompts.listing")
async def listing(*, ports: InPorts, actor: Who) -> views.PromptsView:
    return await prompts.listing(ports, actor=actor)


@route(router, "prompts.show")
async def show(*, ports: InPorts, actor: Who, name: str) -> views.PromptView:
    return await prompts.show(ports, name, actor=actor)


@route(router, "prompts.save")
async def save(*, ports: InPorts, actor: Who, etag: IfMatch, key: Key, name: str, body: Text) -> views.PromptView:
    return await prompts.save(ports, name, body.text, etag=etag, actor=actor, key=key)


@route(router, "prompts.preview")
async def preview(*, ports: InPorts, actor: Who, name: str, body: Wanted | None = None) -> views.PreviewView:
    wanted = body or Wanted()
    return await prompts.preview(ports, name, text=wanted.text, run=wanted.run, actor=actor)


@route(router, "prompts.revert")
async def revert(*, ports: InPorts, actor: Who, etag: IfMatch, key: Key, name: str) -> views.RevertedView:
    return await prompts.revert(ports, name, etag=etag, actor=actor, key=key)


@route(router, "prompts.reset")
async def reset(*, ports: InPorts, actor: Who, key: Key) -> views.PromptsView:
    return await prompts.reset(ports, actor=actor, key=key)
