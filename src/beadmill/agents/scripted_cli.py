"""A coding agent without a model: reads its brief from stdin, acts out a scenario, prints JSON lines.

A program of its own (``python -I -S scripted_cli.py SCENARIO MEMORY MODEL CONVERSATION edit|read``), so the engine, the
demo and the tests drive real processes and real edits for nothing. Standard library only, and little of it: there are
thousands of starts. Exit codes: 0 a result was printed, 3 it failed, 2 wrong usage.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from beadmill.agents.scenario import Step

SOURCE: Final = Path(__file__).resolve().parents[2]
OUTPUT: Final = 4_000  # characters of a command's output in its event
FOREVER: Final = 10**6  # seconds
USAGE: Final = "SCENARIO MEMORY MODEL CONVERSATION edit|read"  # of a new conversation "", as of no model
EDITS: Final = ("write", "append", "delete", "shell")


class Talk:
    """One conversation, remembered between turns in a file: the briefs so far."""

    def __init__(self, folder: Path, conversation: str) -> None:
        self.path = folder / f"{conversation}.json"
        self.briefs: list[str] = json.loads(self.path.read_text()) if self.path.exists() else []

    def add(self, brief: str) -> None:
        self.briefs.append(brief)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(self.briefs))
        temporary.replace(self.path)


class Player:
    def __init__(self, *, may_edit: bool) -> None:
        self.may_edit = may_edit
        self.count = 0

    def play(self, steps: Sequence[Step]) -> int:
        for step in steps:
            if step.kind in EDITS:
                self.edit(step)
                continue
            code = self.speak(step)
            if code is not None:
                return code
        say("result", text="")
        return 0

    def speak(self, step: Step) -> int | None:
        """An exit code when the turn ends with this step."""
        kind, value = step.kind, step.value
        match kind:
            case "say":
                say("text", text=value)
            case "wait":
                time.sleep(value)
            case "hang":
                time.sleep(FOREVER)
            case "reply":
                say("result", text=value)
                return 0
            case "ask":
                say("question", question=value["question"], options=value.get("options", []))
                return 0
            case "limit":
                say("limit", seconds=value.get("seconds"), message=value.get("message", "usage limit reached"))
                return 3
            case "fail":
                say("failure", why=value["why"], message=value.get("message", ""))
                return 3
        return None

    def edit(self, step: Step) -> None:
        kind, value = step.kind, step.value
        self.count += 1
        name = f"tool-{self.count}"
        say("tool", id=name, name=kind, input=value)
        ok, output, code = self.act(kind, value) if self.may_edit else (False, "this session may not edit", None)
        say("tool_done", id=name, name=kind, ok=ok, output=output[-OUTPUT:], exit=code)

    def act(self, kind: str, value: object) -> tuple[bool, str, int | None]:
        if kind == "shell":
            code, output = shell(str(value))
            return code == 0, output, code
        try:
            return True, change(kind, value), None
        except OSError as error:
            return False, str(error), None


def shell(script: str) -> tuple[int, str]:
    """A file takes the output: a pipe would wait for every server that the command leaves in the background."""
    import subprocess
    import tempfile

    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            start_new_session=True,
        )
        output.seek(max(output.tell() - 4 * OUTPUT, 0))
        return done.returncode, output.read().decode("utf-8", "replace")


def change(kind: str, value: object) -> str:
    if kind == "delete":
        Path(str(value)).unlink()
        return f"deleted {value}"
    assert isinstance(value, dict)
    path = Path(value["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w" if kind == "write" else "a", encoding="utf-8") as file:
        file.write(value["content"])
    return f"{kind} {path}"


def say(kind: str, **data: object) -> None:
    sys.stdout.write(json.dumps({"type": kind, **data}) + "\n")
    sys.stdout.flush()


def main(argv: Sequence[str]) -> int:
    if len(argv) != len(USAGE.split()) or argv[-1] not in ("edit", "read"):
        sys.stderr.write(f"usage: scripted_cli.py {USAGE}\n")
        return 2
    path, memory, model, resume, access = argv
    sys.path.insert(0, str(SOURCE))
    from beadmill.agents import scenario

    brief = sys.stdin.read()
    conversation = resume or os.urandom(16).hex()
    talk = Talk(Path(memory), conversation)
    say("start", conversation=conversation, model=model)
    try:
        steps = scenario.load(Path(path)).pick(scenario.Asked(brief, model, tuple(talk.briefs)))
    except (OSError, ValueError) as error:
        say("failure", why="internal", message=str(error))
        return 3
    talk.add(brief)
    code = Player(may_edit=access == "edit").play(steps)
    words = len(brief) // 4 + 1
    say("usage", input=words, cached=sum(len(b) // 4 for b in talk.briefs[:-1]), output=50, reasoning=0)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
