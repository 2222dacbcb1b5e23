# ruff: noqa: INP001
"""Prints docs/cli.md: ``.venv/bin/python .ci/cli_page.py > docs/cli.md``. A test compares the two."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from beadmill.cli.root import tree

HEAD = """\
# Command line

Every command says with `--help` what it takes, and prints JSON on stdout with `--json`; words about progress go to stderr. Commands
start the daemon when it does not run. A gate or a run may be named by its ticket when there is only one.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | the command or its input cannot be understood |
| 3 | not found |
| 4 | conflict: something changed meanwhile, or was answered already |
| 5 | a person is needed |

This page is made from the commands themselves.
"""


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every command that does something, in the order of the help."""
    for name, inner in getattr(command, "commands", {}).items():
        here = (*path, name)
        if getattr(inner, "commands", None):
            yield from commands(inner, here)
        else:
            yield here


def page() -> str:
    app = tree()
    runner = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    parts = [HEAD]
    for path in commands(get_command(app)):
        done = runner.invoke(app, [*path, "--help"], prog_name="beadmill")
        lines = "\n".join(line.rstrip() for line in done.output.strip().splitlines())
        parts.append(f"## beadmill {' '.join(path)}\n\n```\n{lines}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
