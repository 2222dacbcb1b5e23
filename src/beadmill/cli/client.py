"""The REST client of the CLI: standard library only, so a command starts fast."""

from __future__ import annotations

import http.client
import json
import shutil
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import urlencode

from beadmill.errors import BeadmillError, Unavailable
from beadmill.operations.routes import ROUTES
from beadmill.web.record import Record

SLOW = 120.0  # seconds: an agent's install answers late, everything else at once
RATE = "RATE"  # the code of a refusal that only says when to come again
EXITS = {400: 2, 404: 3, 409: 4, 422: 2, 428: 4}


class Failed(BeadmillError):
    """The daemon refused: its envelope, and the exit code that goes with its status."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(
            error.get("message", f"the daemon answered {status}"),
            code=error.get("code", "HTTP"),
            details=error.get("details"),
            kept=error.get("kept", ""),
            next=error.get("next", ""),
        )
        self.status = status
        self.exit_code = EXITS.get(status, 1)


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event; ``data`` is decoded."""

    id: str
    kind: str
    data: Any


@dataclass(frozen=True, slots=True)
class Client:
    record: Record

    def call(
        self,
        operation: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        etag: str = "",
        **path: str | int,
    ) -> Any:
        """The decoded answer of one operation. Every write carries a fresh Idempotency-Key.

        Raises Failed with the daemon's words, Unavailable when it does not answer.
        """
        return json.loads(self.text(operation, body=body, query=query, etag=etag, **path))

    def text(
        self,
        operation: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        etag: str = "",
        **path: str | int,
    ) -> str:
        route = ROUTES[operation]
        headers = self._headers() | ({"If-Match": f'"{etag}"'} if etag else {})
        payload = None
        if route.method != "GET":
            headers["Idempotency-Key"] = uuid.uuid4().hex
            payload = b"" if body is None else json.dumps(body).encode()
            headers |= {"Content-Type": "application/json"} if payload else {}
        return self._until_taken(route.method, _url(route.url(**path), query), payload, headers)

    def send(self, operation: str, source: BinaryIO, *, query: Mapping[str, Any], **path: str | int) -> Any:
        """``source`` goes as it is, read while it is sent. Answers and raises as ``call`` does."""
        route, size = ROUTES[operation], source.seek(0, 2)
        headers = self._headers() | {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        return json.loads(self._until_taken(route.method, _url(route.url(**path), query), source, headers))

    def save(self, operation: str, into: BinaryIO, **path: str | int) -> None:
        """Writes the bytes of an answer as they come. Raises as ``call`` does."""
        connection = http.client.HTTPConnection("127.0.0.1", self.record.port, timeout=SLOW)
        try:
            connection.request("GET", ROUTES[operation].url(**path), headers=self._headers())
            answer = connection.getresponse()
            if answer.status >= 400:
                raise _refused(answer.status, answer.read().decode())
            shutil.copyfileobj(answer, into)
        except (OSError, http.client.HTTPException) as error:
            raise _away(self.record, error) from error
        finally:
            connection.close()

    def _until_taken(self, method: str, url: str, payload: bytes | BinaryIO | None, headers: Mapping[str, str]) -> str:
        while True:
            if payload is not None and not isinstance(payload, bytes):
                payload.seek(0)
            status, said = self._send(method, url, payload, headers)
            if status < 400:
                return said
            refused = _refused(status, said)
            if refused.code != RATE:
                raise refused
            wait = float(refused.details.get("retry_after", 1))
            sys.stderr.write(f"{refused.message}: waiting {wait:.0f} s …\n")
            time.sleep(wait)  # nothing was done: the same request again

    def _send(
        self, method: str, url: str, payload: bytes | BinaryIO | None, headers: Mapping[str, str]
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.record.port, timeout=SLOW)
        try:
            connection.request(method, url, payload, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError as error:
            raise _away(self.record, error) from error
        finally:
            connection.close()

    def follow(self, operation: str, *, query: Mapping[str, Any], last: str = "", **path: str) -> Iterator[Event]:
        """Server-sent events until the daemon ends the stream. Raises as ``call`` does."""
        headers = self._headers() | {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        connection = http.client.HTTPConnection("127.0.0.1", self.record.port, timeout=60)
        try:
            connection.request("GET", _url(ROUTES[operation].url(**path), query), headers=headers)
            answer = connection.getresponse()
            if answer.status >= 400:
                raise _refused(answer.status, answer.read().decode())
            yield from _events(answer)
        except (OSError, http.client.HTTPException) as error:
            raise _away(self.record, error) from error
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        return {
            "Host": f"127.0.0.1:{self.record.port}",
            "Authorization": f"Bearer {self.record.token}",
            "Accept": "application/json",
        }


def _url(path: str, query: Mapping[str, Any] | None) -> str:
    given = {k: v for k, v in (query or {}).items() if v not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def _events(answer: http.client.HTTPResponse) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for raw in answer:
        line = raw.decode().rstrip("\r\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            if "data" in fields:
                yield Event(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
            fields = {}


def _refused(status: int, said: str) -> Failed:
    try:
        return Failed(status, json.loads(said)["error"])
    except (ValueError, KeyError, TypeError):
        return Failed(status, {})


def _away(record: Record, error: Exception) -> Unavailable:
    return Unavailable(
        f"the daemon on {record.url} does not answer: {error}",
        code="DAEMON_GONE",
        kept="everything it has recorded",
        next=f"beadmill restart; its log is {record.log}",
    )
