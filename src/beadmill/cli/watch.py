"""``ticket watch``: a live picture at a terminal, plain lines anywhere else. Ctrl-C detaches; the ticket goes on."""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import typer

from beadmill.cli import daemon
from beadmill.cli.client import Client, Event
from beadmill.cli.common import blind, home, money, parked, say
from beadmill.errors import BeadmillError, Unavailable

ENDS: Final = {"completed": 0, "canceled": 1}
NEEDS_A_PERSON: Final = 5
HELD: Final = "held"  # beside gate ids in what was said already
NEWS: Final = (
    "gate.",
    "ticket.",
    "run.",
    "visit.waits",
    "reset",
)  # events after which plain lines need the ticket anew
QUIET: Final = ("gate", "token", "node", "n")  # of an event: ids, and what its place says already
TICK: Final = 1.0  # seconds between two pictures when nothing happens
CALM: Final = 0.4  # seconds in which many events become one picture
AWAY: Final = 1.0  # seconds before the daemon is looked for again
MARKS: Final = {
    "waiting": "·",
    "ready": "○",
    "running": "●",
    "parked": "●",
    "done": "✓",
    "kept": "✓",
    "superseded": "↺",
    "canceled": "✗",
}


@dataclass(slots=True)
class Feed:
    """Events of one ticket, read by a thread of its own; reconnects behind the last one, also to a new daemon."""

    client: Client
    key: str
    last: str
    heard: queue.Queue[Event | BeadmillError] = field(default_factory=queue.Queue)

    def start(self) -> None:
        threading.Thread(target=self._read, daemon=True, name="events").start()

    def _read(self) -> None:
        while True:
            try:
                for event in self.client.follow("events.since", query={"topics": f"ticket:{self.key}"}, last=self.last):
                    self.last = event.id or self.last
                    self.heard.put(event)
            except Unavailable:
                self._again()
            except BeadmillError as error:
                self.heard.put(error)
                return
            time.sleep(AWAY)

    def _again(self) -> None:
        found = daemon.find(home())
        if found is not None:
            self.client = Client(found)

    def next(self, wait: float) -> list[Event]:
        """What was heard within ``wait`` seconds, at once when something is there. Raises what ended the stream."""
        out: list[Event] = []
        try:
            out.append(self._take(wait))
            while True:
                out.append(self._take(0))
        except queue.Empty:
            return out

    def _take(self, wait: float) -> Event:
        got = self.heard.get(timeout=wait) if wait else self.heard.get_nowait()
        if isinstance(got, BeadmillError):
            raise got
        return got


def watch(client: Client, key: str, *, as_json: bool, until_gate: bool) -> int:
    """Until the ticket ends: 0 completed, 1 canceled; 5 when ``until_gate`` and a person is needed."""
    ticket = client.call("tickets.show", key=key)
    seq = ticket["current"]["seq"] if ticket["current"] else client.call("status.show")["seq"]
    feed = Feed(client, key, str(seq))
    feed.start()
    live = sys.stdout.isatty() and not as_json
    try:
        return _live(feed, ticket, until_gate) if live else _plain(feed, ticket, as_json, until_gate)
    except KeyboardInterrupt:
        say(f"\nDetached; {key} goes on. Back to it: beadmill ticket watch {key}")
        return 0


def _over(ticket: Any, until_gate: bool) -> int | None:
    if ticket["state"] in ENDS:
        return ENDS[ticket["state"]]
    waits = _gates(ticket) or ticket["hold"] != "none" or ticket["state"] == "draft"
    return NEEDS_A_PERSON if until_gate and waits else None


def _fresh(feed: Feed) -> Any:
    """The ticket as it is now; None while the daemon is away."""
    try:
        return feed.client.call("tickets.show", key=feed.key)
    except Unavailable:
        return None


# --- plain lines --------------------------------------------------------------------------------------------------
def _plain(feed: Feed, ticket: Any, as_json: bool, until_gate: bool) -> int:
    asked: set[str] = set()
    limited = False
    if ticket["state"] == "draft" and not as_json:
        typer.echo(f"{ticket['key']} is a draft: beadmill ticket start {ticket['key']}")
    while True:
        _say_gates(ticket, asked, as_json)
        end = _over(ticket, until_gate)
        if end is not None:
            _say_end(ticket, as_json)
            return end
        events = feed.next(TICK if limited else 60)
        for event in events:
            _say_event(event, as_json)
        limited = _limited(events, limited)
        if limited or any(event.kind.startswith(NEWS) for event in events):
            ticket = _fresh(feed) or ticket
            limited = limited and not _parked(ticket)


def _limited(events: list[Event], before: bool) -> bool:
    """A provider's limit was met, and until when is not read yet: parking itself is no event."""
    for event in events:
        if event.kind in ("session.started", "session.ended"):
            before = event.kind == "session.ended" and event.data["data"]["end"] == "Limited"
    return before


def _say_event(event: Event, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(event.data, ensure_ascii=False))
    elif event.kind != "reset":
        data = event.data
        at = (data["visit"] or data["run"] or "").partition("/")[2]
        about = " ".join(
            f"{k}={v}" for k, v in data["data"].items() if v != "" and isinstance(v, (str, int)) and k not in QUIET
        )
        typer.echo(f"{data['at'][11:19]}  {event.kind:<18}  {at}  {about}".rstrip())


def _say_gates(ticket: Any, asked: set[str], as_json: bool) -> None:
    if ticket["hold"] == "none":
        asked.discard(HELD)
    elif HELD not in asked:
        asked.add(HELD)
        if not as_json:
            typer.echo(_held(ticket))
    for line in _parked(ticket):
        if line not in asked and not as_json:
            typer.echo(line)
        asked.add(line)
    for gate in _gates(ticket):
        if gate["id"] not in asked:
            asked.add(gate["id"])
            if not as_json:
                typer.echo(f"WAITS FOR YOU: {gate['title']}\n  {gate['answer_with']}")


def _say_end(ticket: Any, as_json: bool) -> None:
    if not as_json:
        typer.echo(f"{ticket['key']}: {ticket['status'].replace('_', ' ')}, {money(ticket['spend'])}")


def _held(ticket: Any) -> str:
    return f"HELD ({ticket['hold']}): nothing new starts\n  beadmill run resume {ticket['run']}"


def _parked(ticket: Any) -> list[str]:
    return [*blind(ticket["current"]), *parked(ticket["current"])] if ticket["current"] else []


def _gates(ticket: Any) -> list[Any]:
    found: list[Any] = ticket["current"]["gates"] if ticket["current"] else []
    return found


# --- live picture -------------------------------------------------------------------------------------------------
def _live(feed: Feed, ticket: Any, until_gate: bool) -> int:
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with Live(_picture(ticket, away=False), console=console, auto_refresh=False) as screen:
        while True:
            end = _over(ticket, until_gate)
            if end is not None:
                return end
            events = feed.next(TICK)
            time.sleep(CALM if events else 0)
            now = _fresh(feed) if events else ticket
            ticket = now or ticket
            screen.update(_picture(ticket, away=now is None), refresh=True)


def _picture(ticket: Any, *, away: bool) -> Any:
    from rich.console import Group
    from rich.text import Text

    head = Text.assemble((f"{ticket['key']} ", "bold"), ticket["title"])
    facts = [ticket["status"].replace("_", " "), money(ticket["spend"])]
    if ticket["beads"]["total"]:
        facts.append(f"beads {ticket['beads']['done']}/{ticket['beads']['total']} {_bar(ticket['beads'])}")
    if ticket["hold"] != "none":
        facts.append(f"held ({ticket['hold']}): beadmill run resume {ticket['run']}")
    parts: list[Any] = [head, Text("  ".join(facts)), Text(), *_rail(ticket)]
    parts += [Text(line, "yellow") for line in _parked(ticket)]
    for gate in _gates(ticket):
        parts += [Text(), Text(f"Waits for you: {gate['title']}", "bold yellow"), Text(f"  {gate['answer_with']}")]
    if away:
        parts += [Text(), Text("The daemon is away; looking for it …", "yellow")]
    parts += [Text(), Text("Ctrl-C detaches; the ticket goes on.", "dim")]
    return Group(*parts)


def _bar(beads: Any) -> str:
    done: int = round(20 * beads["done"] / beads["total"])
    return "█" * done + "░" * (20 - done)


def _rail(ticket: Any) -> Iterator[Any]:
    from rich.text import Text

    if not ticket["current"]:
        yield Text(f"a draft: beadmill ticket start {ticket['key']}", "dim")
        return
    waiting = {gate["node"] for gate in _gates(ticket)}
    phases = {v["node"]: v["phase"] for v in ticket["current"]["visits"]}
    for node in ticket["current"]["nodes"]:
        state = "asks you" if node["id"] in waiting else node["state"]
        style = "bold yellow" if node["id"] in waiting else {"done": "green", "waiting": "dim"}.get(node["state"], "")
        phase = phases.get(node["id"]) if node["state"] in ("running", "parked", "ready") else None
        again = f" ×{node['visits']}" if node["visits"] > 1 else ""
        said = f"{MARKS.get(node['state'], '·')} {node['title']}{again}  {state}"
        yield Text(said + (f"  {phase.replace('_', ' ')}" if phase else ""), style)
