"""The ASGI application: guard, REST, sign-in, and the pages when they are there."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from beadmill import __version__
from beadmill.errors import BeadmillError
from beadmill.operations.ports import Ports
from beadmill.web import api, sign_in
from beadmill.web.security import TOO_LARGE, Door, Guard, Meter, refusal
from beadmill.web.stream import Streams

log = logging.getLogger("beadmill.web")
PAGES = "beadmill.web.pages"
HTTP_WORDS = {
    404: ("NO_SUCH_ADDRESS", "there is nothing at this address"),
    405: ("METHOD", "not with this method"),
    413: ("TOO_LARGE", TOO_LARGE),
}


@dataclass(frozen=True, slots=True)
class Web:
    """What the routers share. Pages find it at ``request.app.state.web``."""

    ports: Ports
    door: Door
    streams: Streams = field(default_factory=Streams)
    meter: Meter = field(default_factory=Meter)


def create_app(web: Web) -> FastAPI:
    """``beadmill.web.pages`` may offer ``routers() -> Sequence[APIRouter]`` and ``mount(app)`` for static files."""
    app = FastAPI(
        title="Beadmill",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        summary="Everything a person can do in Beadmill, for programs.",
    )
    app.state.web = web
    _serve(app, [sign_in.router, *api.routers()])
    _include_pages(app)
    _handle_errors(app)
    app.add_middleware(Guard, ports=web.ports, door=web.door, meter=web.meter)
    return app


def _serve(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """The routes as they are: an included router has every one of them built again at the first request."""
    for router in routers:
        app.router.routes.extend(router.routes)


def _include_pages(app: FastAPI) -> None:
    if importlib.util.find_spec(PAGES) is None:
        return
    pages = importlib.import_module(PAGES)
    _serve(app, pages.routers())
    if hasattr(pages, "mount"):
        pages.mount(app)


# --- errors -------------------------------------------------------------------------------------------------------
def _handle_errors(app: FastAPI) -> None:
    app.add_exception_handler(BeadmillError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, BeadmillError)
    return refusal(error, request.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [{"field": _field(e["loc"]), "message": e["msg"]} for e in error.errors()]
    said = "; ".join(f"{f['field']}: {f['message']}" for f in found)
    return refusal(
        _status(422, "VALIDATION", f"this request is not valid: {said}", details={"fields": found}), request.headers
    )


def _field(place: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in place[1:]) or str(place[0])


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message = HTTP_WORDS.get(error.status_code, ("HTTP", str(error.detail)))
    answer = refusal(
        _status(error.status_code, code, message, next_="GET /api/docs lists every address"), request.headers
    )
    for name, value in (error.headers or {}).items():
        answer.headers[name] = value
    return answer


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("unexpected error in %s %s", request.method, request.url.path, exc_info=error)
    return refusal(
        _status(500, "INTERNAL", "something went wrong inside Beadmill", next_="beadmill logs shows what"),
        request.headers,
    )


def _status(status: int, code: str, message: str, *, details: Any = None, next_: str = "") -> BeadmillError:
    error = BeadmillError(message, code=code, details=details, kept="nothing was changed", next=next_)
    error.status = status
    return error
