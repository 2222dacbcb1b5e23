"""The demo's own installation: a folder below the data home with its repository, its home and its daemon."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from beadmill.cli import daemon
from beadmill.demo import clis, material
from beadmill.demo.client import RestApi
from beadmill.demo.model.server import ModelServer
from beadmill.domain.values import Json
from beadmill.errors import Refused
from beadmill.processes.sessions import FolderSessions
from beadmill.settings import default_home
from beadmill.web.record import Record

MARK = ".beadmill-demo"  # only a folder with this file is ever removed
KEPT = ("BEADMILL_TESTING", "BEADMILL_CRASH")  # what tests set reaches the demo's daemon too
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Opened:
    """A running daemon of the demo."""

    api: RestApi
    record: Record

    async def link(self) -> str:
        """An address that signs a browser in, once."""
        made = await self.api.call("logins.link")
        return f"{self.record.url}/sign-in#{made['token']}"


def place() -> material.Place:
    return material.Place(default_home() / "demo")


@asynccontextmanager
async def opened(
    where: material.Place, *, agents: Sequence[str], keep: bool, stay: bool, say: Say
) -> AsyncIterator[Opened]:
    """The daemon with the repository and the scenario in place. ``stay``: it goes on afterwards.

    It is also left alone when the demo is interrupted, unless its model is in this process. Raises Refused when
    something else lies in the folder, Unavailable when the agent is missing or the daemon does not come up.
    """
    real = [name for name in agents if name in clis.CLIS]
    options: dict[str, Mapping[str, Json]] = {"scripted": {"scenario": str(where.scenario)}}
    for name in real:
        options[name] = await clis.options(name, where.home / name)
    if not keep:
        await clear(where)
    await _furnish(where, options)
    with ExitStack() as stack:
        stack.enter_context(without_settings())
        if real:
            model = stack.enter_context(ModelServer(where.scenario))
            for name in real:
                clis.CLIS[name].point_at(where.home / name, model)
        record = await asyncio.to_thread(daemon.ensure, where.home, say=say, port=0)
        api = RestApi.of(record.url, record.token)
        stop = bool(real) or not stay
        try:
            yield Opened(api, record)
        except asyncio.CancelledError:
            stop = bool(real)
            raise
        finally:
            await api.http.aclose()
            if stop:
                await asyncio.to_thread(daemon.stop, where.home, say=say)


async def clear(where: material.Place) -> None:
    """Ends whatever of an earlier demo still runs, then removes it."""
    if not where.root.exists():
        return
    if not (where.root / MARK).exists() and any(where.root.iterdir()):
        raise Refused(
            f"{where.root} is not a demo",
            code="NOT_A_DEMO",
            kept="everything in it",
            next="move it away, or set BEADMILL_HOME to another folder",
        )
    await asyncio.to_thread(daemon.stop, where.home, say=lambda _: None)
    for session in FolderSessions(where.home / "sessions", adapters={}, sandboxes={}).all():
        if session.live():
            await session.stop("the demo begins anew")
    await asyncio.to_thread(shutil.rmtree, where.root)


async def _furnish(where: material.Place, agents: Mapping[str, Mapping[str, Json]]) -> None:
    where.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (where.root / MARK).touch()
    await material.make_repository(where)
    material.write_scenario(where)
    lines = ["# Written by beadmill demo", "port = 0", "", "[defaults]", 'manual_qa = "off"']
    for name, values in agents.items():
        lines += ["", f"[agents.{name}]", *(f"{key} = {_toml(value)}" for key, value in values.items())]
    (where.home / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _toml(value: Json) -> str:
    """A value of TOML. JSON writes strings, numbers, truths and lists the same, but for DEL; a table is inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@contextmanager
def without_settings() -> Iterator[None]:
    """The person's own settings, a database above all, are not the demo's."""
    hidden = {
        name: os.environ.pop(name) for name in list(os.environ) if name.startswith("BEADMILL_") and name not in KEPT
    }
    try:
        yield
    finally:
        os.environ.update(hidden)


def command(home: Path, words: str) -> str:
    """A command (``beadmill …``) as a person types it for the demo's home; by its path when it is not on the PATH."""
    mine = Path(sys.argv[0])
    program = shlex.quote(str(mine)) if mine.name == "beadmill" and not shutil.which("beadmill") else "beadmill"
    return f"BEADMILL_HOME={shlex.quote(str(home))} {program} {words.removeprefix('beadmill ')}"
