"""What the script answers, before a wire spells it. Pure."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from beadmill.demo.model.transcript import Transcript
from beadmill.domain.values import Json, estimate_tokens

SHELLS: Final = ("exec_command", "shell_command", "shell", "Bash", "bash", "run_shell_command", "Shell", "terminal")
QUESTION: Final = "question"
_COMMAND: Final = ("cmd", "command", "script")  # the names a shell tool gives to what it runs
_FILL: Final[Mapping[str, Json]] = {"boolean": False, "integer": 60_000, "number": 60_000, "array": [], "object": {}}
Stop: TypeAlias = Literal["end", "truncated", "refused"]


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: Mapping[str, Json]


@dataclass(slots=True)
class Answer:
    """One response. ``input`` and ``cached`` are tokens by estimate; ``input`` includes ``cached``."""

    model: str
    input: int = 0
    cached: int = 0
    parts: list[Say | Call] = field(default_factory=list)
    stop: Stop = "end"
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])

    @classmethod
    def to(cls, transcript: Transcript) -> Answer:
        reads = [estimate_tokens(text) for text in (*transcript.briefs, *(o for _, o in transcript.outputs))]
        # A provider has seen all but the newest part.
        return cls(transcript.model, sum(reads), sum(reads[:-1]))

    def say(self, text: str) -> None:
        self.parts.append(Say(text))

    def call(self, tool: str, arguments: Mapping[str, Json]) -> None:
        self.parts.append(Call(tool, arguments))

    def shell(self, command: str, tools: Mapping[str, Json]) -> None:
        name = next((name for name in SHELLS if name in tools), SHELLS[0])
        self.call(name, _arguments(command, tools.get(name)))

    def ask(self, question: str, options: Sequence[str], tools: Mapping[str, Json]) -> None:
        """By the tool for questions when the CLI offers one."""
        if QUESTION not in tools:
            self.say(question)
            return
        labels = [{"label": option, "description": option} for option in options]
        self.call(QUESTION, {"questions": [{"question": question, "header": "Question", "options": labels}]})

    def reply(self, text: str, transcript: Transcript) -> None:
        """By the tool for structured replies when the CLI offers one and the text is an object."""
        value = _object(text) if transcript.structured else None
        if value is None:
            self.say(text)
        else:
            self.call(transcript.structured, value)

    @property
    def output(self) -> int:
        """Tokens written, by estimate."""
        return sum(estimate_tokens(p.text if isinstance(p, Say) else json.dumps(p.arguments)) for p in self.parts)

    @property
    def calls(self) -> bool:
        return any(isinstance(part, Call) for part in self.parts)


def _arguments(command: str, schema: Json) -> dict[str, Json]:
    """Fills the tool's own schema: its name for the command, and whatever else it demands."""
    known = schema.get("properties", {}) if isinstance(schema, dict) else {}
    key = next((name for name in _COMMAND if name in known), "cmd")
    several = known.get(key, {}).get("type") == "array"
    made: dict[str, Json] = {key: ["bash", "-lc", command] if several else command}
    for name in schema.get("required", ()) if isinstance(schema, dict) else ():
        if name not in made:
            wanted = known.get(name, {})
            made[name] = wanted["enum"][0] if wanted.get("enum") else _FILL.get(wanted.get("type"), "a scripted step")
    return made


def _object(text: str) -> dict[str, Json] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
