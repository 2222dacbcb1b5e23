"""What a request says, whatever its wire; and what the script answers next. Pure.

Which reply answers and which of its steps comes next is read from the request alone (the last brief among the user
messages, and how many of its tool calls already have an output): retries, resumes and parallel sessions need no
bookkeeping.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from beadmill.agents.scenario import Step
from beadmill.domain.values import Json

EDITS: Final = ("write", "append", "delete", "shell")
STRUCTURED: Final = ("StructuredOutput", "structured_output")  # tools by which a CLI asks for a schema
_UNCOUNTED: Final = frozenset({"write_stdin", *STRUCTURED})  # calls that are no step of the script
# What a CLI adds in the user's name: before the brief, or alone.
_ADDED = re.compile(r"\s*<([a-z_-]+)>.*?</\1>\s*", re.DOTALL)
_NOT_A_BRIEF = re.compile(r"\s*(?:<[a-z_-]+>|# AGENTS\.md instructions)")
_RUNNING = re.compile(r"[Pp]rocess running with session ID (\d+)")


@dataclass(frozen=True, slots=True)
class Transcript:
    """A request, understood. ``outputs`` are those behind the last brief, oldest first, with their tool's name;
    ``tools`` has the JSON Schema of each tool's input."""

    briefs: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    model: str
    tools: Mapping[str, Json] = field(default_factory=dict)

    @property
    def step(self) -> int:
        return sum(name not in _UNCOUNTED for name, _ in self.outputs)

    @property
    def running(self) -> int | None:
        """The command session that the last output left running (Codex)."""
        found = _RUNNING.search(self.outputs[-1][1]) if self.outputs else None
        return int(found[1]) if found else None

    @property
    def structured(self) -> str:
        """The tool that takes a structured reply, "" when there is none."""
        return next((name for name in STRUCTURED if name in self.tools), "")

    @property
    def delivered(self) -> bool:
        """The structured reply was taken: nothing is left to say."""
        return bool(self.outputs) and self.outputs[-1][0] in STRUCTURED


class Reader:
    """Collects a conversation in order: what the user said, what was called, what came back."""

    def __init__(self) -> None:
        self._briefs: list[str] = []
        self._outputs: list[tuple[str, str]] = []
        self._called: dict[str, str] = {}

    def said(self, text: str) -> None:
        """A user's words; what the CLI adds in the user's name is passed by."""
        while added := _ADDED.match(text):
            text = text[added.end() :]
        if text.strip() and not _NOT_A_BRIEF.match(text):
            self._briefs.append(text)
            self._outputs = []

    def called(self, call: str, tool: str) -> None:
        self._called[call] = tool

    def came_back(self, call: str, output: str) -> None:
        self._outputs.append((self._called.get(call, ""), output))

    def read(self, model: str, tools: Mapping[str, Json]) -> Transcript:
        return Transcript(tuple(self._briefs), tuple(self._outputs), model, tools)


def text_of(content: Json) -> str:
    """The text of a message's content: a string, a list of parts, or an object with a content of its own."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return text_of(content.get("content")) if isinstance(content, dict) else ""


def stretch(steps: Sequence[Step], done: int) -> list[Step]:
    """The steps of one answer: everything from the ``done``-th edit on, up to the next edit or the end of the turn."""
    edits = [n for n, step in enumerate(steps) if step.kind in EDITS]
    begin = edits[done - 1] + 1 if 0 < done <= len(edits) else 0 if done == 0 else len(steps)
    end = edits[done] + 1 if done < len(edits) else len(steps)
    return list(steps[begin:end])


def command_of(step: Step) -> str:
    """An edit as the shell command that a model would write."""
    if step.kind == "shell":
        return str(step.value)
    if step.kind == "delete":
        return f"rm -- {shlex.quote(step.value)}"
    path, content = PurePosixPath(step.value["path"]), str(step.value["content"])
    folder = f"mkdir -p -- {shlex.quote(str(path.parent))} && " if str(path.parent) not in (".", "/") else ""
    into = f"{'>' if step.kind == 'write' else '>>'} {shlex.quote(str(path))}"
    if content.endswith("\n") and "\nEND_OF_FILE\n" not in f"\n{content}":
        return f"{folder}cat {into} <<'END_OF_FILE'\n{content}END_OF_FILE"
    return f"{folder}printf %s {shlex.quote(content)} {into}"
