"""The demo's way to the daemon: the same public REST API that everybody has."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2

from beadmill.errors import BeadmillError, Conflict, Unavailable
from beadmill.operations.routes import ROUTES

SLOW = 60.0  # seconds for an answer; the daemon answers from its own database
AGAIN = 0.3  # seconds before a stream that ended is opened again
RATE = 429


class Api(Protocol):
    async def call(
        self,
        operation: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        etag: str = "",
        once: str = "",
        **path: str,
    ) -> Any:
        """One operation by its name in operations/routes.py; ``once`` is its idempotency key, ``path`` fills its address.

        Raises Conflict for 409, BeadmillError for other refusals, Unavailable when the daemon does not answer.
        """
        ...

    def follow(self, topic: str) -> AsyncIterator[Mapping[str, Any]]:
        """Every event of the topic from the first on, then each new one; ends only with its reader."""
        ...


@dataclass(frozen=True, slots=True)
class RestApi:
    http: httpx2.AsyncClient

    @classmethod
    def of(cls, url: str, token: str) -> RestApi:
        """``url`` without a path; ``token`` is the bearer token of the daemon's own CLI."""
        return cls(
            httpx2.AsyncClient(
                base_url=url,
                headers={"Authorization": f"Bearer {token}"},
                timeout=SLOW,
                trust_env=False,
                verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # plain HTTP: no certificates are read for it
            )
        )

    async def call(
        self,
        operation: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        etag: str = "",
        once: str = "",
        **path: str,
    ) -> Any:
        route = ROUTES[operation]
        headers = {"Accept": "application/json"}
        headers |= {"If-Match": f'"{etag}"'} if etag else {}
        headers |= {"Idempotency-Key": once} if once else {}
        while True:
            answer = await self._send(route.method, route.url(**path), json=body, params=query, headers=headers)
            if answer.status_code != RATE:
                break
            await asyncio.sleep(_pause(answer))
        if answer.is_success:
            return answer.json()
        raise _refusal(answer)

    async def _send(self, method: str, url: str, **more: Any) -> httpx2.Response:
        try:
            return await self.http.request(method, url, **more)
        except httpx2.TransportError as error:
            raise Unavailable(
                f"the daemon does not answer ({error})",
                code="DAEMON_GONE",
                kept="everything the daemon has recorded; the run goes on when it is started again",
                next="beadmill demo --keep",
            ) from error

    async def follow(self, topic: str) -> AsyncIterator[Mapping[str, Any]]:
        since = 0
        while True:
            with suppress(httpx2.TransportError):  # the next call says whether the daemon is gone
                async for event in self._stream(topic, since):
                    since = event["seq"]
                    yield event
            await asyncio.sleep(AGAIN)

    async def _stream(self, topic: str, since: int) -> AsyncIterator[Mapping[str, Any]]:
        url = ROUTES["events.since"].url()
        headers = {"Accept": "text/event-stream"}
        async with self.http.stream(
            "GET", url, params={"topics": topic, "since": since}, headers=headers, timeout=None
        ) as answer:
            if not answer.is_success:
                raise httpx2.ReadError(f"the stream was refused with {answer.status_code}")
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))


def _pause(answer: httpx2.Response) -> float:
    details = answer.json()["error"]["details"]
    return float(details.get("retry_after", 1))


def _refusal(answer: httpx2.Response) -> BeadmillError:
    try:
        said = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        return BeadmillError(
            f"the daemon answered {answer.status_code}", code="HTTP", details={"status": answer.status_code}
        )
    kind = Conflict if answer.status_code == Conflict.status else BeadmillError
    return kind(said["message"], code=said["code"], details=said["details"], kept=said["kept"], next=said["next"])
