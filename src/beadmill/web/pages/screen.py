"""What every screen needs: who asks, the layout with what waits, errors in words, and safe ways back."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse, RedirectResponse, Response

from beadmill import __version__
from beadmill.domain.values import Actor
from beadmill.errors import BeadmillError
from beadmill.operations import events, gates
from beadmill.operations.ports import Ports
from beadmill.web.pages.render import environment

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {"Content-Security-Policy": CSP, "Referrer-Policy": "same-origin"}  # forms need their Origin sent


@dataclass(frozen=True, slots=True)
class Screen:
    """``seq`` was read before anything else of the page: what is newer comes by its stream, so nothing is missed."""

    request: Request
    ports: Ports
    actor: Actor
    seq: int

    @property
    def live(self) -> bool:
        """htmx asks for the part that changes, not for the page."""
        return "hx-request" in self.request.headers

    async def page(self, name: str, *, status: int = 200, topics: str = "board", **values: Any) -> HTMLResponse:
        """A whole page, or its live part when htmx asks."""
        waits = await gates.waiting(self.ports, actor=self.actor)
        shell = {
            "screen": self,
            "path": self.request.url.path,
            "version": __version__,
            "topics": topics,
            "seq": self.seq,
            "waits": waits,
            "live": self.live,
            "layout": "live.html" if self.live else "layout.html",
            "fresh_key": secrets.token_hex(12),
        }
        return self.part(name, status=status, **shell, **values)

    def part(self, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        text = environment().get_template(name).render(values)
        return HTMLResponse(text, status, HEADERS)


async def _screen(request: Request) -> Screen:
    ports, actor = request.app.state.web.ports, request.scope["actor"]
    return Screen(request, ports, actor, await events.newest(ports, actor=actor))


On = Annotated[Screen, Depends(_screen)]


def back(address: str, otherwise: str = "/") -> RedirectResponse:
    """To a page of ours. Any other address is ignored."""
    ours = address.startswith("/") and not address.startswith(("//", "/\\"))
    return RedirectResponse(address if ours else otherwise, 303)


class PageRoute(APIRoute):
    """An error of ours becomes a page with what happened, what was kept and what to do next."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        original = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await original(request)
            except BeadmillError as error:
                return await problem(await _screen(request), error)

        return handle


async def problem(screen: Screen, error: BeadmillError) -> Response:
    """htmx gets only the box, into the place for problems; a browser gets the page."""
    if screen.live:
        answer = screen.part("parts/problem.html", status=error.status, error=error)
        answer.headers["HX-Retarget"] = "#problems"
        answer.headers["HX-Reswap"] = "innerHTML"
        return answer
    return await screen.page("problem.html", status=error.status, error=error)
