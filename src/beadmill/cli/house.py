"""The installation itself: open, start, stop, restart, status, logs, clean, demo."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TextIO

import typer

from beadmill.cli import daemon
from beadmill.cli.clean import clean
from beadmill.cli.client import Client
from beadmill.cli.common import AsJson, api, fields, home, say, show
from beadmill.errors import NotFound
from beadmill.web.record import Record, log_file

Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Exactly this port; default: 7420, or a free one.")]
LOOK = 0.2  # seconds between two looks at the log


def add_to(app: typer.Typer) -> None:
    for name, command in COMMANDS.items():
        app.command(name)(command)


def open_(
    browser: Annotated[bool, typer.Option(help="Open the browser; otherwise the link is printed.")] = True,
    as_json: AsJson = False,
) -> None:
    """Open the GUI, signed in by a link that works once."""
    client = api()
    link = client.call("logins.link")
    url = f"{client.record.url}/sign-in#{link['token']}"
    opened = browser and not as_json and _browse(url)
    said = {"url": url, "expires": link["expires"], "opened": opened}
    show(said, as_json=as_json, text=lambda s: typer.echo("Opened in your browser." if s["opened"] else s["url"]))


def _browse(url: str) -> bool:
    import webbrowser

    return webbrowser.open(url)


def start(
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay in this terminal.")] = False,
    port: Port = None,
    as_json: AsJson = False,
) -> None:
    """Start the daemon."""
    if foreground:
        daemon.serve(port=port)
        return
    show(_where(daemon.ensure(home(), say=say, port=port)), as_json=as_json, text=_running)


def _where(record: Record) -> dict[str, Any]:
    return {"running": True, "url": record.url, "pid": record.pid, "version": record.version, "log": record.log}


def _running(where: Any) -> None:
    typer.echo(f"Running on {where['url']} (process {where['pid']}).")


def stop(as_json: AsJson = False) -> None:
    """Stop the daemon. Agents that work go on and are met again at the next start."""
    stopped = daemon.stop(home(), say=say)
    said = {"stopped": stopped}
    show(said, as_json=as_json, text=lambda s: typer.echo("Stopped." if s["stopped"] else "No daemon runs."))


def restart(port: Port = None, as_json: AsJson = False) -> None:
    """Stop and start the daemon."""
    daemon.stop(home(), say=say)
    show(_where(daemon.ensure(home(), say=say, port=port)), as_json=as_json, text=_running)


def status(as_json: AsJson = False) -> None:
    """Is the daemon running, what waits, what is wrong. Exit code 3 when it does not run."""
    record = daemon.required(home())
    view = Client(record).call("status.show")
    show({**_where(record), **view}, as_json=as_json, text=_status)


def _status(view: Any) -> None:
    fields(
        [
            ("daemon", f"{view['url']} (process {view['pid']}, version {view['version']})"),
            ("home", view["home"]),
            ("database", view["database"]),
            ("tickets", ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in view["tickets"].items())),
            ("waits for you", f"{view['waits']} (beadmill gate list)" if view["waits"] else "nothing"),
            ("sessions", view["sessions"]),
            ("agent servers", f"up for {', '.join(view['servers'])}" if view["servers"] else "none"),
            ("log", view["log"]),
        ]
    )
    for line in view["health"]:
        if not line["ok"]:
            typer.echo(f"! {line['name']}: {line['message']}. {line['next']}")


def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on; survives the log's rotation.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="The last so many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """The daemon's log."""
    path = log_file(home())
    if not path.exists():
        raise NotFound(f"there is no log yet: {path}", code="NO_LOG", next="beadmill start")
    file = path.open(errors="replace")
    _print(file.read().splitlines()[-lines:] if lines else [], as_json=as_json)
    if not follow:
        file.close()
        return
    try:
        for line in _grown(path, file):
            _print([line], as_json=as_json)
    except KeyboardInterrupt:
        return


def _print(lines: Iterable[str], *, as_json: bool) -> None:
    for line in lines:
        typer.echo(json.dumps(line, ensure_ascii=False) if as_json else line)


def _grown(path: Path, file: TextIO) -> Iterator[str]:
    """New lines behind what ``file`` has read; when it was renamed away, its rest and then the new one."""
    while True:
        line = file.readline()
        if line:
            yield line.rstrip("\n")
        elif _rotated(path, file.fileno()):
            file.close()
            file = path.open(errors="replace")
        else:
            time.sleep(LOOK)


def _rotated(path: Path, handle: int) -> bool:
    import os

    try:
        return path.stat().st_ino != os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


AGENTS = (
    "scripted, or real CLIs with a scripted model: codex, claude_code, opencode; several, with commas, share the seats."
)


def demo(
    agent: Annotated[str, typer.Option(help=AGENTS)] = "scripted",
    answers: Annotated[str, typer.Option(help="auto, or ask: you answer the gates.")] = "auto",
    keep: Annotated[bool, typer.Option("--keep", help="Go on with the demo of the last time.")] = False,
    as_json: AsJson = False,
) -> None:
    """One ticket from draft to merged change: no key, no Docker."""
    from beadmill.processes.loading import by_path

    # The demo lies above the doors: by name, as a plugin would be.
    run_demo, known = by_path("beadmill.demo.main:run_demo"), ("scripted", *by_path("beadmill.demo.clis:CLIS"))
    if not {*agent.split(",")} <= {*known} or answers not in ("auto", "ask"):
        raise typer.BadParameter(f"--agent is one of {', '.join(known)}; --answers is auto or ask")
    raise typer.Exit(run_demo(agent=agent, answers=answers, json=as_json, keep=keep))


COMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    "open": open_,
    "start": start,
    "stop": stop,
    "restart": restart,
    "status": status,
    "logs": logs,
    "clean": clean,
    "demo": demo,
}
