"""What commands share: the daemon's client, the --json switch, printing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from beadmill.cli import daemon
from beadmill.cli.client import Client
from beadmill.domain.money import said
from beadmill.errors import Conflict, Invalid

AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Most = Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="At most so many.")]


def group(help_: str) -> typer.Typer:
    """A noun: ``beadmill <noun> <verb>``."""
    return typer.Typer(help=help_, no_args_is_help=True, rich_markup_mode=None)


def home() -> Path:
    """``BEADMILL_HOME`` as settings.py reads it, without loading pydantic."""
    given = os.environ.get("BEADMILL_HOME")
    if given:
        return Path(given).absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir("beadmill")).absolute()


def say(text: str) -> None:
    """Progress: to stderr, so --json stays clean."""
    typer.echo(text, err=True)


def api() -> Client:
    """The daemon's client; the daemon is started when it does not run."""
    return Client(daemon.ensure(home(), say=say))


def show(answer: Any, *, as_json: bool, text: Callable[[Any], None]) -> None:
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
    else:
        text(answer)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """Aligned columns; the last one is cut to the terminal's width, nothing is cut in a pipe."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        typer.echo(empty)
        return
    lines = [list(columns), *cells]
    widths = [max(_width(line[i]) for line in lines) for i in range(len(columns))]
    room = _room()
    for line in lines:
        parts = [text + " " * (width - _width(text)) for text, width in zip(line, widths, strict=True)]
        typer.echo(_cut("  ".join(parts).rstrip(), room))


def _cell(value: Any) -> str:
    return "-" if value in (None, "") else str(value).replace("\n", " ")


def _width(text: str) -> int:
    """Columns of a terminal: East Asian wide characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, room: int) -> str:
    if not room or _width(text) <= room:
        return text
    while _width(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


def _room() -> int:
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def fields(pairs: Iterable[tuple[str, Any]]) -> None:
    known = [(name, value) for name, value in pairs if value not in (None, "", [], {})]
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        typer.echo(f"{name:<{width}}  {value}")


def money(spend: dict[str, Any]) -> str:
    """Tokens and money; what has no price says so."""
    cost = said(spend["cost_usd"], spend["unpriced"])
    return f"{spend['tokens']:,} tokens" + (f", {cost}" if cost else "")


def blind(run: dict[str, Any]) -> Iterator[str]:
    """A warning when the run's limit in USD does not see everything."""
    budget = run["budget"]
    if budget["blind"]:
        yield (
            f"The budget of ${budget['usd']:.2f} does not see {said(None, budget['unpriced'])}: "
            "set a price in config.toml ([prices]), or limit tokens"
        )


def overrides(pairs: Sequence[str]) -> dict[str, Any]:
    """``build.attempts=3`` → {"build": {"attempts": 3}}. Raises Invalid."""
    out: dict[str, Any] = {}
    for pair in pairs:
        path, equals, value = pair.partition("=")
        if not equals or not path:
            raise Invalid(f"{pair!r} is not of the form key=value", code="SET", next="for example build.attempts=3")
        into = out
        *groups, last = path.split(".")
        for name in groups:
            into = into.setdefault(name, {})
        into[last] = _of(path, value)
    return out


def changes(pairs: Sequence[str]) -> dict[str, Any]:
    """``build.attempts=3 budget.usd=`` → {"build.attempts": 3, "budget.usd": None}: nothing inherits again. Raises
    Invalid."""
    out: dict[str, Any] = {}
    for pair in pairs:
        path, equals, value = pair.partition("=")
        if not equals or not path:
            raise Invalid(f"{pair!r} is not of the form key=value", code="SET", next="for example build.attempts=3")
        out[path] = _of(path, value) if value else None
    return out


LISTS = ("council.seats", "allow_hosts", "readable")


def set_all(client: Client, pairs: Sequence[str], **whose: str) -> Any:
    """Settings of a project, a ticket or the installation. Raises Failed."""
    return client.call("settings.change", body={"changes": changes(pairs), **whose})


def _of(path: str, text: str) -> Any:
    """Seats, hosts and folders may be written with commas instead of as JSON."""
    value = _value(text)
    if path in LISTS and isinstance(value, str):
        return [part.strip() for part in text.split(",") if part.strip()]
    return value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def settings_of(layer: dict[str, Any], *above: str) -> str:
    """A layer of settings as they are typed: ``build.parallel=2 council.mode=solo``."""
    parts = [
        settings_of(value, *above, name)
        if isinstance(value, dict)
        else f"{'.'.join((*above, name))}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in layer.items()
    ]
    return "  ".join(parts)


def parked(run: dict[str, Any]) -> Iterator[str]:
    """What waits for a time: a provider's limit, a question that lapses."""
    for visit in run["visits"]:
        if visit["state"] == "parked" and visit["wake_at"]:
            yield f"{visit['node']} waits until {visit['wake_at'][:16].replace('T', ' ')} UTC"


def text_of(given: str) -> str:
    """``-`` reads standard input, ``@file`` a file, anything else is the text itself."""
    if given == "-":
        return sys.stdin.read()
    if given.startswith("@"):
        return read_file(given[1:])
    return given


def read_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {error}", code="FILE") from error


def run_of(client: Client, name: str) -> str:
    """A run's id, or the current run of a ticket. Raises Failed (exit 3), Conflict when it has not started."""
    if "-r" in name:
        return name
    run: str | None = client.call("tickets.show", key=name)["run"]
    if run is None:
        raise Conflict(f"{name} has not started", code="NO_RUN", next=f"beadmill ticket start {name}")
    return run


def gate_of(client: Client, name: str) -> dict[str, Any]:
    """A gate by its id, or the one open gate of a ticket. Raises Conflict when there is none or more than one."""
    if "/" in name:
        found: dict[str, Any] = client.call("gates.show", gate=name)
        return found
    lines = client.call("gates.listing", query={"ticket": name})["items"]
    if not lines:
        status = client.call("tickets.show", key=name)["status"].replace("_", " ")
        raise Conflict(
            f"{name} asks nothing now: {status}", code="NO_GATE", next=f"beadmill ticket watch {name} --until-gate"
        )
    if len(lines) > 1:
        ids = ", ".join(line["id"] for line in lines)
        raise Conflict(f"{name} has {len(lines)} open gates: {ids}", code="WHICH_GATE", next="name the gate by its id")
    gate: dict[str, Any] = client.call("gates.show", gate=lines[0]["id"])
    return gate
