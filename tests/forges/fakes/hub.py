"""What every hosting service has behind its API: real bare repositories, changes, rules; and a server on 127.0.0.1."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import RLock, Thread
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from beadmill.errors import Conflict
from beadmill.forges import merging
from beadmill.forges.records import Record
from beadmill.git.run import Repo
from tests.forges.fakes.openapi import Spec

Json = Any
AT = "2026-01-02T03:04:05Z"
TOKEN = "canary-2b7f1d9c5e"
SIGNED = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Hub"), ("EMAIL", "hub@example.org"))
}


@dataclass
class Change:
    number: int
    title: str
    body: str
    home: str  # the repository of the head
    branch: str
    base: str
    draft: bool
    head: str = ""
    state: str = "open"  # open | closed | merged
    merge_sha: str = ""
    queued: bool = False
    looks: int = 0  # how often it was asked since something moved
    reviews: list[dict[str, Json]] = field(default_factory=list)
    notes: list[dict[str, Json]] = field(default_factory=list)
    lines: list[dict[str, Json]] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    body: Json
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Told:
    status: int
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)


Route = tuple[str, str, Callable[..., Told]]


class Hub:
    """``project`` is the base repository; ``forks`` are others that share its history. Subclasses speak one API."""

    root = ""  # of the API
    said_token = ""  # how the Authorization header begins

    def __init__(self, bare: Path, *, project: str = "team/sample") -> None:
        self.repos = {project: bare}
        self.project = project
        self.changes: list[Change] = []
        self.asked: list[Asked] = []
        self.problems: list[str] = []
        self.scripted: list[tuple[str, str, list[Told]]] = []
        self.renamed: dict[str, str] = {}  # old name → new
        self.blocked = ""  # why a rule forbids every merge
        self.methods = ["merge", "squash", "rebase"]
        self.queue = False
        self.slow = 0  # looks until the service has worked out whether it merges
        self.lags = 0  # looks until a push is seen
        self.pushes = True
        self.page = 100
        self.token = TOKEN
        self.statuses: list[dict[str, Json]] = []
        self.lock = RLock()
        self._server: _Server | None = None

    # --- the server ---
    @property
    def server(self) -> _Server:
        """Listens from its first use."""
        self._server = self._server or _Server(self)
        return self._server

    def start(self) -> None:
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def next(self, method: str, path: str, *answers: Told) -> None:
        """The next requests whose path matches are answered so, before anything else is looked at."""
        self.scripted.append((method, path, list(answers)))

    def spec(self) -> Spec | None:
        raise NotImplementedError

    def routes(self) -> Iterator[Route]:
        raise NotImplementedError

    def refused(self, status: int, words: str) -> Told:
        return Told(status, {"message": words})

    def answer(self, asked: Asked) -> Told:
        with self.lock:
            self.asked.append(asked)
            spec, path = self.spec(), asked.path.removeprefix(self.root)
            if spec and "/graphql" not in path:
                self.problems += spec.request(asked.method, path, query=asked.query, body=asked.body)
            told = self._scripted(asked) or self._routed(asked, path)
            schema = spec.answer_schema(asked.method, path, told.status) if spec else None
            if spec is None or schema is None:
                return told
            full = spec.fill(schema, told.body)
            self.problems += spec.check(schema, full, f"{asked.method} {path} {told.status}")
            return Told(told.status, full, told.headers)

    def _scripted(self, asked: Asked) -> Told | None:
        for method, path, answers in self.scripted:
            if answers and method == asked.method and re.search(path, asked.path):
                return answers.pop(0)
        return None

    def _routed(self, asked: Asked, path: str) -> Told:
        if asked.headers.get("authorization") != f"{self.said_token} {self.token}":
            return self.refused(401, "Bad credentials")
        for old, new in self.renamed.items():
            if f"/{old}" in path:
                there = f"{self.url}{self.root}{path.replace(old, new)}"
                return Told(
                    301 if asked.method == "GET" else 307, {"message": "Moved Permanently"}, {"Location": there}
                )
        for method, pattern, act in self.routes():
            found = re.fullmatch(pattern, path) if method == asked.method else None
            if found:
                return act(asked, *map(unquote, found.groups()))
        return self.refused(404, "Not Found")

    # --- what lies behind it ---
    def git(self, repo: str, *args: str, ok: bool = True) -> str:
        done = subprocess.run(["git", "-C", str(self.repos[repo]), *args], check=ok, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode in (0, 1) else ""

    def tip(self, repo: str, branch: str) -> str:
        return self.git(repo, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", ok=False)

    def fork(self, name: str, bare: Path) -> None:
        subprocess.run(["git", "clone", "-q", "--bare", str(self.repos[self.project]), str(bare)], check=True)
        self.repos[name] = bare

    def ahead(self, base: str, home: str, branch: str) -> int | None:
        """None when one of them is not there."""
        if not self.tip(self.project, base) or not self.tip(home, branch):
            return None
        self.git(self.project, "fetch", "-q", str(self.repos[home]), f"refs/heads/{branch}")
        return int(self.git(self.project, "rev-list", "--count", f"{base}..{self.tip(home, branch)}"))

    def open(self, home: str, branch: str, *, base: str, title: str, body: str, draft: bool) -> Change | None:
        """None when there is one already."""
        if any(c.state == "open" and (c.home, c.branch, c.base) == (home, branch, base) for c in self.changes):
            return None
        made = Change(len(self.changes) + 1, title, body, home, branch, base, draft, head=self.tip(home, branch))
        self.changes.append(made)
        return made

    def change(self, number: str | int) -> Change | None:
        """As the branches stand now."""
        found = next((c for c in self.changes if c.number == int(number)), None)
        return self.fresh(found) if found else None

    def fresh(self, change: Change) -> Change:
        tip = self.tip(change.home, change.branch)
        if change.state == "open" and tip and tip != change.head:
            self.lags, change.looks = max(self.lags - 1, 0), 0
            change.head = change.head if self.lags else tip
        return change

    def merges(self, change: Change) -> bool | None:
        """Whether base and head merge; None while it is being worked out."""
        change.looks += 1
        if change.looks <= self.slow:
            return None
        self.git(self.project, "fetch", "-q", str(self.repos[change.home]), change.head, ok=False)
        bare = self.repos[self.project]
        command = ["git", "-C", str(bare), "merge-tree", "--write-tree", change.base, change.head]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def merge(self, change: Change, method: str) -> None:
        record = Record(
            change.number, change.title, change.body, change.branch, change.base, "", change.head, change.state
        )
        base = self.tip(self.project, change.base)
        repo = Repo(self.repos[self.project], None)
        with ThreadPoolExecutor(1) as aside:  # a test may have a loop of its own
            build = merging.build(repo, record, base, method=method, env=SIGNED)
            new = aside.submit(asyncio.run, build).result()
        self.git(self.project, "update-ref", f"refs/heads/{change.base}", new, base)
        change.state, change.merge_sha, change.queued = "merged", new, False

    def run_queue(self) -> None:
        """What a merge queue does in its own time."""
        for change in self.changes:
            if change.queued:
                self.merge(change, "merge")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: Hub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(
            self.command, parts.path, dict(parse_qsl(parts.query)), json.loads(data) if data else None, headers
        )
        try:
            told = self.server.hub.answer(asked)
        except Conflict as error:  # of a merge that does not go
            told = self.server.hub.refused(405, error.message)
        body = b"" if told.body is None else json.dumps(told.body).encode()
        self.send_response(told.status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **told.headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = _serve  # noqa: N815 - names of the library

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests read what was asked."""
