"""The one way out of a box whose network is empty: a proxy of the runner. Standard library only.

Nothing has to run inside beside the command. ``KNOCK`` is the box's first program: it listens on a port of the empty
network, hands that listening socket to the runner through the socket file ``NAME``, and becomes the command. The
runner accepts what connects there, in a network where it has no address itself. What else a program inside may
hand over is served in the same way, so it gains nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from beadmill.errors import Unavailable
from beadmill.processes.hosts import AllowList
from beadmill.processes.proxy import Proxy
from beadmill.processes.spec import Policy

NAME: Final = "door"  # in the session's folder
INSIDE: Final = Path("/run/beadmill-door")
PORT: Final = 47420
MOST: Final = 256  # boxes of one session
# Python has changed signals and locale: the command gets both as they were.
KNOCK: Final = """
import os, signal, socket, sys
door, port, *argv = sys.argv[1:]
try:
    there, way = socket.create_server(("127.0.0.1", int(port))), socket.socket(socket.AF_UNIX)
    way.connect(door)
    socket.send_fds(way, [b"."], [there.fileno()])
    if way.recv(1) != b".":
        raise OSError("it is shut")
except OSError as error:
    sys.exit(f"beadmill: the proxy of the allow-list cannot be reached: {error}")
with open("/proc/self/environ", "rb") as file:
    env = dict(one.split(b"=", 1) for one in file.read().split(b"\\0") if b"=" in one)
for name in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(name, signal.SIG_DFL)
try:
    os.execvpe(argv[0], argv, env)
except OSError as error:
    sys.stderr.write(f"beadmill: {argv[0]}: {error.strerror}\\n")
    sys.exit(127)
"""


def knock() -> tuple[str, ...]:
    """Goes before the argv of a command."""
    return (sys.executable, "-I", "-S", "-c", KNOCK, str(INSIDE), str(PORT))


def environment(env: Mapping[str, str], policy: Policy) -> dict[str, str]:
    """``env`` with our proxy instead of others. Servers of the box itself are reached without it, unless the list has
    that name: then it means the host's."""
    kept = {k: v for k, v in env.items() if k.lower() not in ("all_proxy", "no_proxy")}
    url, mine = f"http://127.0.0.1:{PORT}", AllowList(policy.hosts).loopback()
    direct = ",".join(name for name in ("localhost", "127.0.0.1", "::1") if name not in mine)
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), url)
    return {**kept, **proxies, "NO_PROXY": direct, "no_proxy": direct, "NODE_USE_ENV_PROXY": "1"}


class Door:
    """Opened for a policy that is an allow-list, in the current folder: its path may be longer than a socket address."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        """``folder`` is the current one."""
        self._folder, self._warn = folder, warn
        self._socket: socket.socket | None = None
        self._ways: set[socket.socket] = set()
        self._servers: list[asyncio.Server] = []
        self._coming: set[asyncio.Task[None]] = set()
        self._proxy: Proxy | None = None

    async def open(self, policy: Policy) -> Policy:
        """The policy with where the door is. Raises Unavailable for a list that names no host."""
        if policy.network != "allow-list":
            return policy
        try:
            self._proxy = Proxy(AllowList(policy.hosts), self._warn)
        except ValueError as error:
            raise Unavailable(f"the allow-list is wrong: {error}", code="SANDBOX_POLICY") from error
        _forget()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(NAME)
        self._socket.listen()
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._come)
        return replace(policy, door=self._folder / NAME)

    async def close(self) -> None:
        """Idempotent. All connections end."""
        if self._socket is None:
            return
        for end in (self._socket, *self._ways):
            asyncio.get_running_loop().remove_reader(end)
            end.close()
        for server in self._servers:
            server.close()
        for task in self._coming:
            task.cancel()
        if self._proxy is not None:
            await self._proxy.close()
        self._ways.clear()
        self._socket = None
        _forget()

    def _come(self) -> None:
        if self._socket is None:
            return
        with contextlib.suppress(OSError):  # who came may have gone already
            way, _ = self._socket.accept()
            if len(self._ways) + len(self._servers) >= MOST:
                way.close()
                return
            way.setblocking(False)
            self._ways.add(way)
            asyncio.get_running_loop().add_reader(way, self._given, way)

    def _given(self, way: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(way)
        task = asyncio.get_running_loop().create_task(self._serve(way))
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)

    async def _serve(self, way: socket.socket) -> None:
        try:
            there = _listener(way)
            if there is not None and self._proxy is not None:
                self._servers.append(await asyncio.start_server(self._proxy.serve, sock=there, limit=self._proxy.LIMIT))
                way.send(b".")
        except OSError:
            return
        finally:
            self._ways.discard(way)
            way.close()


def _forget() -> None:
    Path(NAME).unlink(missing_ok=True)


def _listener(way: socket.socket) -> socket.socket | None:
    """What was handed over, when it is a TCP socket that listens. Raises OSError."""
    _, handles, _, _ = socket.recv_fds(way, 1, 1)
    for more in handles[1:]:
        os.close(more)
    if not handles:
        return None
    try:
        found = socket.socket(fileno=handles[0])
    except OSError:
        os.close(handles[0])
        raise
    tcp = found.family == socket.AF_INET and found.type == socket.SOCK_STREAM
    if tcp and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return found
    found.close()
    return None
