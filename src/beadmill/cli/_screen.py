"""The person's terminal for the interview's form."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from beadmill.cli.client import Client
from beadmill.cli.watch import Feed
from beadmill.errors import Unavailable
from beadmill.processes.editor import edited

LOOK: Final = 2.0  # seconds between two looks when nothing is heard
MARK: Final = "# Everything below this line is left out.\n"


@dataclass(slots=True)
class Screen:
    """interview_form.Terminal on a real one."""

    client: Client
    key: str
    feed: Feed | None = None
    console: Console = field(default_factory=lambda: Console(highlight=False))

    def __post_init__(self) -> None:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 - input() then edits its line

    def read(self, prompt: str) -> str:
        return input(prompt)

    def say(self, text: str = "", style: str = "") -> None:
        self.console.print(Text(text, style))

    def write(self, text: str) -> str:
        try:
            return edited(f"{text}\n\n{MARK}").partition(MARK.strip())[0]
        except Unavailable as error:
            self.say(f"{error.message}: {error.next}", "yellow")
            return ""

    def until(self, words: str, ready: Callable[[], Any]) -> Any:
        found = ready()
        if found is not None:
            return found
        with self.console.status(words):
            for _ in self._news():
                found = ready()
                if found is not None:
                    return found
        return None

    def _news(self) -> Iterator[None]:
        """Whenever something happened to the ticket, and every LOOK seconds."""
        if self.feed is None:
            self.feed = Feed(self.client, self.key, str(self.client.call("status.show")["seq"]))
            self.feed.start()
        while True:
            self.feed.next(LOOK)
            yield
