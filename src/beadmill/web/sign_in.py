"""Signing in: the link's token travels in the fragment, a tiny page posts it once, a cookie comes back."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse, JSONResponse, Response

from beadmill.operations import logins
from beadmill.operations.ports import Ports
from beadmill.web.plain import STYLE, digest, plain
from beadmill.web.security import Door

SCRIPT = """
const token = location.hash.slice(1), say = document.querySelector("p");
history.replaceState(null, "", "/sign-in");
addEventListener("hashchange", () => location.reload());  // a link that is opened where this page lies already
if (!token) say.textContent = "Run: beadmill open";
else fetch("/sign-in", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({token})})
  .then(async (r) => { if (r.ok) location.replace("/"); else {
    const e = (await r.json()).error; say.textContent = e.message + ". " + e.next; } })
  .catch(() => { say.textContent = "The daemon does not answer. Run: beadmill open"; });
"""
PAGE = plain(
    "Beadmill",
    "<p role=status>Signing in …</p><noscript>Beadmill needs JavaScript to sign in.</noscript>",
    script=SCRIPT,
)


class Token(BaseModel):
    token: str = Field(min_length=16, max_length=200)


router = APIRouter(include_in_schema=False)


@router.get("/sign-in")
async def page() -> HTMLResponse:
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": _policy()})


@router.post("/sign-in")
async def enter(request: Request, body: Token) -> Response:
    ports, door = _house(request)
    session = await logins.enter(ports, body.token)
    done = JSONResponse({"message": "signed in"})
    most = int(logins.SESSION.total_seconds())
    done.set_cookie(door.cookie, session, max_age=most, httponly=True, samesite="strict", path="/")
    return done


@router.post("/sign-out")
async def leave(request: Request) -> Response:
    ports, door = _house(request)
    session = request.cookies.get(door.cookie)
    if session:
        await logins.leave(ports, session)
    done = JSONResponse({"message": "signed out"})
    done.delete_cookie(door.cookie, path="/", httponly=True, samesite="strict")
    return done


def _house(request: Request) -> tuple[Ports, Door]:
    web = request.app.state.web
    return web.ports, web.door


def _policy() -> str:
    """This page alone runs an inline script: exactly this one, by its hash."""
    return (
        f"default-src 'none'; script-src {digest(SCRIPT)}; style-src {digest(STYLE)}; connect-src 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
