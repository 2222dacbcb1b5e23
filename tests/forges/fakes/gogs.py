"""Gogs: the two questions its API can answer for us, and git over http as git's own http-backend serves it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self
from urllib.parse import urlsplit

from tests.forges.fakes.hub import TOKEN, Asked, Hub, Route, Told
from tests.forges.fakes.openapi import Spec, written

SPEC = written(
    {
        "User": {"id": "int", "username": "str", "-login": "str", "full_name": "str"},
        "Permission": {"admin": "bool", "push": "bool", "pull": "bool"},
        "Repository": {"id": "int", "full_name": "str", "default_branch": "str", "-permissions": "Permission?"},
        "Said": {"-message": "str"},
    },
    {
        "GET /user": {"200": "User", "401": "Said"},
        "GET /repos/{owner}/{repo}": {"200": "Repository", "404": "Said"},
    },
)


class GogsHub(Hub):
    root = "/api/v1"
    said_token = "token"

    def spec(self) -> Spec:
        return SPEC

    def routes(self) -> Iterator[Route]:
        yield "GET", "/user", lambda _: Told(200, {"username": "robot"})
        yield "GET", "/repos/([^/]+/[^/]+)", self._repo

    def _repo(self, _: Asked, name: str) -> Told:
        if name not in self.repos:
            return self.refused(404, "Not Found")
        return Told(200, {"full_name": name, "permissions": {"admin": False, "push": self.pushes, "pull": True}})


class GitHttp(ThreadingHTTPServer):
    """The repositories of a folder over http, for whoever signs in with ``password``; "" = for nobody."""

    daemon_threads = True

    def __init__(self, folder: Path, *, password: str = TOKEN, hub: GogsHub | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder, self.password, self.hub = folder, password, hub
        self.seen: list[str] = []  # Authorization headers

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: GitHttp

    def _serve(self) -> None:
        if self.server.hub and self.path.startswith(self.server.hub.root):
            self._tell(self.server.hub)
        else:
            self._git()

    def _tell(self, hub: GogsHub) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        told = hub.answer(Asked(self.command, self.path, {}, None, headers))
        self.send_response(told.status)
        self.end_headers()
        self.wfile.write(json.dumps(told.body).encode())

    def _git(self) -> None:
        given = self.headers.get("Authorization", "")
        self.server.seen.append(given)
        password = base64.b64decode(given.partition(" ")[2]).decode().partition(":")[2]
        if not self.server.password or password != self.server.password:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
            return
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        done = subprocess.run(["git", "http-backend"], input=data, env=self._env(), capture_output=True, check=True)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _env(self) -> dict[str, str]:
        parts = urlsplit(self.path)
        return {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": self.command,
            "REMOTE_USER": "robot",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "CONTENT_LENGTH": self.headers.get("Content-Length", ""),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.receivepack",
            "GIT_CONFIG_VALUE_0": "true",
        }

    do_GET = do_POST = _serve  # noqa: N815 - names of the library

    def log_message(self, *_: object) -> None:
        """Nothing."""
