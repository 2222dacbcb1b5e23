"""The guard in front of every request: host, credential, origin, size, rate. Nothing behind it is open by accident.

Loopback only. A browser has a cookie (from a one-time link), programs have a bearer token. Both must hold when both
are sent: a bearer never excuses a cookie. No CORS header is ever sent.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from time import monotonic
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from beadmill.domain.values import Actor
from beadmill.errors import BeadmillError, Refused
from beadmill.operations import logins
from beadmill.operations.ports import Ports
from beadmill.operations.rules import OWNER
from beadmill.web.plain import STYLE, digest, plain

BODY: Final = 2 * 1024 * 1024  # bytes
UPLOAD: Final = re.compile(
    r"/api/v1/tickets/[^/]+/qa/items/[^/]+/evidence"
)  # streamed to a file, with a limit of its own
TOO_LARGE: Final = "a request body has at most 2 MiB"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN_PATHS: Final = frozenset({"/sign-in"})
CSP: Final = (
    f"default-src 'none'; script-src 'self'; style-src 'self' {digest(STYLE)}; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Unauthorized(BeadmillError):
    status = 401


class TooLarge(BeadmillError):
    status = 413


class TooMany(BeadmillError):
    status = 429


@dataclass(frozen=True, slots=True)
class Door:
    """Where this daemon listens and the bearer token of its own CLI (hashed)."""

    port: int
    token_hash: str

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(f"{name}:{self.port}" for name in ("127.0.0.1", "localhost"))

    @property
    def cookie(self) -> str:
        """Cookies do not know ports: the name tells two daemons of one machine apart."""
        return f"beadmill_{self.port}"


# --- rate ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Rates:
    """Requests a minute and client."""

    reads: int = 200
    writes: int = 120
    saves: int = 300
    sign_ins: int = 20


@dataclass(slots=True)
class Meter:
    """Fixed windows of a minute per client and kind; old windows are dropped as time goes on."""

    rates: Rates = field(default_factory=Rates)
    now: Callable[[], float] = monotonic
    _window: int = 0
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def count(self, client: str, method: str, path: str) -> None:
        """Raises TooMany."""
        now = self.now()
        if int(now // 60) != self._window:
            self._window, self._counts = int(now // 60), {}
        kind = _kind(method, path)
        seen = self._counts[client, kind] = self._counts.get((client, kind), 0) + 1
        most: int = getattr(self.rates, kind)
        if seen > most:
            wait = 60 - int(now % 60)
            raise TooMany(
                f"more than {most} {kind.replace('_', '-')} in this minute",
                code="RATE",
                details={"limit": most, "retry_after": wait},
                kept="nothing was changed",
                next=f"try again in {wait} s",
            )


def _kind(method: str, path: str) -> str:
    if path in OPEN_PATHS:
        return "sign_ins"
    if method in SAFE:
        return "reads"
    while_typing = path.startswith("/api/v1/drafts/") or (path.endswith("/check") and "/artifacts/" in path)
    while_typing = while_typing or (method == "PUT" and path.endswith("/qa"))
    return "saves" if while_typing else "writes"


# --- guard --------------------------------------------------------------------------------------------------------
class Guard:
    """Pure ASGI, so streams pass untouched. Puts ``actor`` into the scope."""

    def __init__(self, app: ASGIApp, *, ports: Ports, door: Door, meter: Meter) -> None:
        self.app, self.ports, self.door, self.meter = app, ports, door, meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        sending = _Sending(send)
        try:
            actor = await self._admit(scope)
            scope["actor"] = actor
            body = receive if _streamed(scope) else _limited(receive, Headers(scope=scope))
            await self.app(scope, body, sending)
        except BeadmillError as error:
            if sending.begun:
                raise
            await refusal(error, Headers(scope=scope))(scope, receive, sending)

    async def _admit(self, scope: Scope) -> Actor | None:
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        check_host(headers, self.door)
        cookie = _cookie(headers, self.door.cookie)
        if cookie is not None or path in OPEN_PATHS:
            check_origin(headers, method, self.door)
        if path in OPEN_PATHS:
            self.meter.count("anyone", method, path)
            return None
        actor = await self._who(headers, cookie)
        self.meter.count(_client(actor, cookie, headers), method, path)
        return actor

    async def _who(self, headers: Headers, cookie: str | None) -> Actor:
        """Every credential that is sent must hold. Raises Unauthorized."""
        found: Actor | None = None
        if cookie is not None:
            found = await logins.of_session(self.ports, cookie)
            if found is None:
                raise _nobody("this browser is not signed in any more")
        if "authorization" in headers:
            found = await self._bearer(headers["authorization"])
        if found is None:
            raise _nobody("sign in first")
        return found

    async def _bearer(self, value: str) -> Actor:
        scheme, _, token = value.partition(" ")
        if scheme.lower() == "bearer" and token:
            if hmac.compare_digest(logins.hashed(token), self.door.token_hash):
                return Actor("user", OWNER, "cli")
            found = await logins.of_token(self.ports, token)
            if found is not None:
                return found
        raise _nobody("this token is not valid here")


def _nobody(message: str) -> Unauthorized:
    return Unauthorized(message, code="UNAUTHORIZED", kept="nothing was changed", next="run: beadmill open")


def _cookie(headers: Headers, name: str) -> str | None:
    if "cookie" not in headers:
        return None
    jar = SimpleCookie()
    try:
        jar.load(headers["cookie"])
    except CookieError:
        return None
    return jar[name].value if name in jar else None


def _client(actor: Actor, cookie: str | None, headers: Headers) -> str:
    """One browser or one token, without keeping either."""
    secret = cookie or headers.get("authorization", "")
    return f"{actor.name}:{hashlib.sha256(secret.encode()).hexdigest()[:16]}"


def check_host(headers: Headers, door: Door) -> None:
    """Exactly the names this daemon listens on, so no foreign name can be pointed here. Raises Refused."""
    if headers.get("host", "") not in door.hosts:
        raise Refused(
            "this host name is not served here",
            code="HOST",
            kept="nothing was changed",
            next=f"use http://127.0.0.1:{door.port}",
        )


def check_origin(headers: Headers, method: str, door: Door) -> None:
    """A browser request must come from our own pages; a typed address or a link from a terminal may only read."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if origin is not None:
        ours = origin in {f"http://{host}" for host in door.hosts} and site in (None, "same-origin")
    elif method in SAFE:
        ours = site in (None, "same-origin", "none")
    else:
        ours = site == "same-origin"
    if not ours:
        raise Refused("this request came from another site", code="ORIGIN", kept="nothing was changed")


def _streamed(scope: Scope) -> bool:
    return scope["method"] == "POST" and UPLOAD.fullmatch(scope["path"]) is not None


def _limited(receive: Receive, headers: Headers) -> Receive:
    """Bodies up to 2 MiB, whether the length is announced or not."""
    announced = headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > BODY:
        raise _too_large()
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > BODY:
            raise HTTPException(413)  # the one error that the framework lets through while it reads a body
        return message

    return limited


def _too_large() -> TooLarge:
    return TooLarge(f"a request body has at most {BODY // 1024**2} MiB", code="TOO_LARGE", kept="nothing was changed")


class _Sending:
    """Adds the security headers; a header the page set itself wins."""

    def __init__(self, send: Send) -> None:
        self.send, self.begun = send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self.send(message)


# --- answers ------------------------------------------------------------------------------------------------------
def refusal(error: BeadmillError, headers: Mapping[str, str]) -> Response:
    """The envelope; for a browser that asked for a page, the same words as one."""
    extra: dict[str, str] = {}
    if error.status == 401:
        extra["WWW-Authenticate"] = "Bearer"
    if error.status == 429:
        extra["Retry-After"] = str(error.details.get("retry_after", 60))
    if "text/html" in headers.get("accept", "") and "hx-request" not in headers:
        return HTMLResponse(_page(error), error.status, extra)
    return JSONResponse(error.envelope(), error.status, extra)


def _page(error: BeadmillError) -> str:
    from html import escape

    said = "".join(f"<p>{escape(part)}</p>" for part in (error.kept, error.next) if part)
    home = "" if error.status == 401 else '<p><a href="/">To the board</a></p>'
    return plain(escape(error.message), f"{said}{home}")
