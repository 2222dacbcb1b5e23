"""The daemon: one per home. Lock, port, daemon.json, uvicorn that stops with streams open.

``daemon.lock`` is held for life; ``daemon.json`` (0600) says who, where, and the CLI's token, once requests are served.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import logging.handlers
import os
import secrets
import signal
import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final, Protocol

import uvicorn

from beadmill import __version__
from beadmill.errors import BeadmillError
from beadmill.operations import logins
from beadmill.operations.ports import Ports
from beadmill.processes import procs
from beadmill.settings import Settings
from beadmill.web import record
from beadmill.web.app import Web, create_app
from beadmill.web.security import Door
from beadmill.web.stream import Streams

log = logging.getLogger("beadmill.daemon")
GRACE: Final = 2  # seconds uvicorn gives open requests after the streams were told to close
LOG_SIZE: Final = 5_000_000
CHILDREN: Final = 30.0  # seconds the house may take to let its git and forge children end


class House(Protocol):
    """What app.py builds: the ports for the doors, and the engine's life."""

    @property
    def ports(self) -> Ports: ...

    def open(self) -> None:
        """Checks and migrates the store, starts the engine on its own thread. Raises Unavailable."""
        ...

    def close(self, patience: float) -> None:
        """Lets activations detach; agents go on. Returns when nothing of ours runs, or after ``patience`` seconds."""
        ...


class PortTaken(BeadmillError):
    """Somebody else listens on the port that was asked for."""


def bind(settings: Settings) -> socket.socket:
    """The wanted port; when the default one is taken, a free one. Raises PortTaken for a port somebody asked for."""
    try:
        return _listen(settings.host, settings.port)
    except OSError as error:
        if "port" in settings.model_fields_set:
            raise PortTaken(
                f"port {settings.port} on {settings.host} cannot be used: {error.strerror}",
                code="PORT_TAKEN",
                kept="nothing was started",
                next="free it, choose another with --port or BEADMILL_PORT, or give none to get a free one",
            ) from error
        return _listen(settings.host, 0)


def _listen(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()  # two may bind one port with REUSEADDR, and only then does one of them hear that it is taken
    except OSError:
        made.close()
        raise
    made.set_inheritable(False)
    return made


# --- server -------------------------------------------------------------------------------------------------------
class Server(uvicorn.Server):
    """Tells the streams to end before uvicorn waits for them, and says when it is ready."""

    def __init__(self, config: uvicorn.Config, *, streams: Streams, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.streams, self.ready = streams, ready
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self.ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.close_streams()
        super().handle_exit(sig, frame)

    def close_streams(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.streams.closing.set)


def serve(settings: Settings, build: Callable[[Settings], House]) -> None:
    """Runs the daemon until SIGTERM or SIGINT. Raises Conflict, PortTaken, Unavailable."""
    record.owned(settings.home)
    os.umask(0o077)
    with record.only_daemon(settings.home), bind(settings) as sock:
        _log_to(record.log_file(settings.home))
        house = build(settings)
        house.open()
        try:
            _serve(settings, house, sock)
        finally:
            house.close(CHILDREN)
            log.info("stopped")


def _serve(settings: Settings, house: House, sock: socket.socket) -> None:
    token = secrets.token_urlsafe(32)
    me = _record(settings.home, sock.getsockname()[1], token)
    web = Web(house.ports, Door(me.port, logins.hashed(token)))
    config = uvicorn.Config(
        create_app(web),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=GRACE,
        lifespan="off",
        server_header=False,
        date_header=False,
    )
    server = Server(config, streams=web.streams, ready=lambda: _ready(settings.home, me))
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises the signal again when it is done: nobody dies of it
        signal.signal(number, lambda *_: None)
    try:
        server.run(sockets=[sock])
    finally:
        record.forget(settings.home, me.instance)


def _ready(home: Path, me: record.Record) -> None:
    record.write(home, me)
    gc.freeze()
    gc.enable()
    log.info("serving %s (process %s, version %s)", me.url, me.pid, me.version)


def _record(home: Path, port: int, token: str) -> record.Record:
    pid = os.getpid()
    me = procs.look(pid)
    return record.Record(
        pid=pid,
        start=me.start if me else 0,
        boot=procs.boot_id(),
        instance=uuid.uuid4().hex,
        port=port,
        token=token,
        version=__version__,
        log=str(record.log_file(home)),
    )


def _log_to(path: Path) -> None:
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_SIZE, backupCount=3)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    logging.getLogger("alembic").setLevel(logging.WARNING)
