"""The demo in the terminal: plain lines, or a live view when somebody is watching."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from beadmill.demo.watch import Look
from beadmill.domain.money import said

NODE_SIGNS = {
    "waiting": ("·", "dim"),
    "ready": ("…", "cyan"),
    "running": ("…", "cyan"),
    "parked": ("…", "cyan"),
    "done": ("✓", "green"),
    "kept": ("✓", "green"),
}


class Screen(Protocol):
    """Everything goes to stderr: stdout belongs to the result."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def say(self, line: str) -> None: ...
    def update(self, seen: Look) -> None: ...


def screen() -> Screen:
    console = Console(stderr=True, highlight=False)
    return LiveScreen(console) if console.is_terminal and sys.stdout.isatty() else PlainScreen(console)


class PlainScreen:
    """One line per thing that happened."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def say(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)

    def update(self, seen: Look) -> None:
        pass


class LiveScreen:
    """The same lines, and below them the rail of nodes, the beads and what was spent as they are now."""

    def __init__(self, console: Console) -> None:
        self._seen: Look | None = None
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._view)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def say(self, line: str) -> None:
        self._live.console.print(line, markup=False)

    def update(self, seen: Look) -> None:
        self._seen = seen
        self._live.refresh()

    def _view(self) -> Group:
        if self._seen is None or not self._seen.run:
            return Group()
        return Group(rail(self._seen), beads(self._seen), spent(self._seen))


def rail(seen: Look) -> Text:
    out = Text()
    for node in seen.run["nodes"]:
        sign, style = NODE_SIGNS.get(node["state"], ("?", "yellow"))
        again = f" ×{node['visits']}" if node["visits"] > 1 else ""
        out.append(f"{sign} {node['id']}{again}  ", style=style)
    return out


def beads(seen: Look) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for bead in seen.beads:
        sign = {"done": "✓", "in_progress": "…", "error": "!"}.get(bead["state"], "·")
        tries = f"try {bead['attempts']}" if bead["attempts"] else ""
        table.add_row(sign, bead["id"], bead["title"], tries)
    return table


def spent(seen: Look) -> Text:
    spend = seen.run["spend"]
    price = said(spend["cost_usd"], spend["unpriced"]) or "unpriced"
    return Text(f"{spend['tokens']:,} tokens, {price}, {spend['agent_seconds']:.0f} s of agent time", style="dim")
