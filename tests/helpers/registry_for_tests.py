"""A package registry on 127.0.0.1 for the real npm."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

PROGRAM = "#!/bin/sh\necho tool 1.2.3\n"


def package(name: str, files: Mapping[str, str], **more: Any) -> tuple[dict[str, Any], bytes]:
    """The manifest and the tarball of ``name`` 1.2.3."""
    manifest = {"name": name, "version": "1.2.3", **more}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path, text in {"package.json": json.dumps(manifest), **files}.items():
            info = tarfile.TarInfo(f"package/{path}")
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    return manifest, packed.getvalue()


class Registry(ThreadingHTTPServer):
    """Serves the packages it is given; while ``go`` is not set every request waits: npm keeps what it once had."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.packages: dict[str, tuple[dict[str, Any], bytes]] = {}
        self.go, self.asked = Event(), Event()
        self.go.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def add(self, name: str, files: Mapping[str, str], **more: Any) -> None:
        self.packages[name] = package(name, files, **more)


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        self.server.asked.set()
        self.server.go.wait(60)
        name = self.path.strip("/").replace("%2f", "/")
        wanted = name.removesuffix(".tgz")
        if wanted not in self.server.packages:
            self._send(404, b"{}")
        elif name.endswith(".tgz"):
            self._send(200, self.server.packages[wanted][1])
        else:
            self._send(200, json.dumps(self._described(wanted)).encode())

    def _described(self, name: str) -> dict[str, Any]:
        manifest, tarball = self.server.packages[name]
        digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
        dist = {"tarball": f"{self.server.url}{name}.tgz", "integrity": f"sha512-{digest}"}
        return {"name": name, "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": {**manifest, "dist": dist}}}

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # an npm that was ended
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests read what npm says."""


@contextmanager
def registry() -> Iterator[Registry]:
    with Registry() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.go.set()
            server.shutdown()
            thread.join()
