"""One HTTP client for every hosting service: authorization, pages, limits, retries, redirects.

What is safe to do twice is tried again after a failure of the service; what is not is never repeated, and its caller
looks first. The token travels in a header, to the service's own address and nowhere else.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import random
import re
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self

import httpx2

from beadmill import redact
from beadmill.errors import Refused
from beadmill.forges import _faults
from beadmill.forges._faults import Answer

log = logging.getLogger("beadmill.forges")
TRIES: Final = 3
SHORT: Final = 5.0  # seconds: a wait up to this is waited here, a longer one is said
REDIRECTS: Final = 3
PAGES: Final = 40
TIMEOUT: Final = httpx2.Timeout(20.0, connect=10.0)
FAILED: Final = frozenset({500, 502, 503, 504})
_NEXT = re.compile(r'<([^>]+)>\s*;[^,]*\brel="?next"?')


@dataclass(frozen=True, slots=True)
class Nature:
    """What tests take into their hands: waiting, the clock, chance."""

    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.time
    chance: Callable[[], float] = random.random


@dataclass(slots=True)
class Http:
    """``host`` is the name that people know it by, ``base`` the address of its API. ``moved`` is where it sent us to."""

    host: str
    base: str
    headers: Mapping[str, str] = field(repr=False)
    nature: Nature = field(default_factory=Nature)
    moved: str = ""
    _client: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """One set of connections for one act: a forge is used from whatever loop its caller has."""
        for value in self.headers.values():
            redact.learn(value.rpartition(" ")[2])
        async with httpx2.AsyncClient(
            headers={"User-Agent": "beadmill", **self.headers},
            timeout=TIMEOUT,
            verify=_trusted(),
            follow_redirects=False,
        ) as self._client:
            yield self

    async def get(
        self, path: str, what: str, *, query: Mapping[str, Any] | None = None, also: tuple[int, ...] = ()
    ) -> Answer:
        """``also`` are the statuses beside success that the caller reads itself."""
        return await self._send("GET", path, what, query=query, also=also, again=True)

    async def send(
        self, method: str, path: str, what: str, *, body: Any = None, also: tuple[int, ...] = (), again: bool = False
    ) -> Answer:
        """``again``: doing it twice is doing it once, so a failure of the service is tried over."""
        return await self._send(method, path, what, body=body, also=also, again=again)

    async def pages(
        self, path: str, what: str, *, query: Mapping[str, Any] | None = None, key: str = ""
    ) -> AsyncIterator[Any]:
        """The items of every page, by the Link header or GitLab's X-Next-Page. ``key`` names the list in an object."""
        now, asked = path, dict(query or {})
        for _ in range(PAGES):
            answer = await self._send("GET", now, what, query=asked, again=True)
            body = answer.body or {}
            for item in body.get(key, ()) if key else body:
                yield item
            link, number = _NEXT.search(answer.headers.get("link", "")), answer.headers.get("x-next-page", "")
            if link:
                now, asked = self._same_origin(link[1], what), {}
            elif number:
                asked["page"] = number
            else:
                return
        log.warning("%s: more than %d pages while %s; the rest is left out", self.host, PAGES, what)

    async def _send(
        self,
        method: str,
        path: str,
        what: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        also: tuple[int, ...] = (),
        again: bool,
    ) -> Answer:
        url = path if "://" in path else f"{self.base}{path}"
        for left in range(TRIES - 1, -1, -1):
            try:
                answer = await self._once(method, url, what, query=query, body=body)
            except httpx2.HTTPError as error:
                if not (again and left):
                    raise _faults.unavailable(self.host, _why(error), what=what) from error
                await self._backoff(left)
                continue
            if answer.status < 300 or (answer.status in also and not _faults.limited(answer)):
                return answer
            if not (left and await self._waits(answer, left, again=again)):
                raise _faults.of(answer, host=self.host, what=what, now=self.nature.clock())
        raise AssertionError

    async def _waits(self, answer: Answer, left: int, *, again: bool) -> bool:
        """Waits if it is worth trying again. A limit refused the request, so even an act may be tried over."""
        if _faults.limited(answer):
            seconds = _faults.wait_of(answer, now=self.nature.clock())
            if seconds <= SHORT:
                await self.nature.pause(seconds)
            return seconds <= SHORT
        if again and answer.status in FAILED:
            await self._backoff(left)
            return True
        return False

    async def _backoff(self, left: int) -> None:
        await self.nature.pause(0.5 * 2 ** (TRIES - 1 - left) * (1 + self.nature.chance()))

    async def _once(self, method: str, url: str, what: str, *, query: Mapping[str, Any] | None, body: Any) -> Answer:
        """Follows redirects inside the service, with the method as it is: 301 would make a POST a GET elsewhere."""
        assert self._client is not None, "inside open() only"
        for _ in range(REDIRECTS + 1):
            got = await self._client.request(method, url, params=query or None, json=body)
            if got.status_code not in (301, 302, 307, 308) or (got.status_code == 302 and method != "GET"):
                return Answer(got.status_code, {k.lower(): v for k, v in got.headers.items()}, _json(got))
            url = self._same_origin(str(got.url.join(got.headers.get("location", ""))), what)
            query = None if httpx2.URL(url).query else query
            if not self.moved:
                log.warning("%s moved while %s: it is at %s now", self.host, what, url.partition("?")[0])
            self.moved = url.partition("?")[0]
        raise _faults.unavailable(self.host, f"it redirects more than {REDIRECTS} times", what=what)

    def _same_origin(self, url: str, what: str) -> str:
        ours, theirs = httpx2.URL(self.base), httpx2.URL(url)
        if (ours.scheme, ours.host, ours.port) == (theirs.scheme, theirs.host, theirs.port):
            return url
        raise Refused(
            f"{self.host} sends us to {theirs.host} while {what}; the token is not sent there",
            code="FORGE_MOVED",
            details={"host": self.host, "to": theirs.host},
            kept=_faults.KEPT,
            next="If the repository moved there, change the remote (git remote set-url) and the project's forge.",
        )


def _json(got: httpx2.Response) -> Any:
    if not got.content:
        return None
    try:
        return got.json()
    except ValueError:
        return got.text


def _why(error: httpx2.HTTPError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "it did not answer in time"
    return redact.ours().text(str(error)).rstrip(".") or type(error).__name__


@functools.cache
def _trusted() -> ssl.SSLContext:
    """The system's certificates and what SSL_CERT_FILE adds: a company's own forge has a company's own authority."""
    return ssl.create_default_context()
