"""The command tree, and the one place where errors become words and exit codes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import typer

from beadmill.cli import house
from beadmill.cli.daemon import told
from beadmill.errors import BeadmillError

GROUPS: Final = {
    "project": "projects",
    "ticket": "tickets",
    "gate": "gates",
    "interview": "interviews",
    "qa": "qa",
    "bead": "plan",
    "run": "runs",
    "artifact": "artifacts",
    "session": "sessions",
    "undo": "undo",
    "sop": "sops",
    "agent": "agents",
    "config": "config",
    "prompt": "prompts",
}  # by command, the module beside this one


def tree(wanted: str = "") -> typer.Typer:
    """The commands: all of them, or those of the first word ``wanted`` alone; a branch that nobody asked for is half of
    the start."""
    app = typer.Typer(
        name="beadmill",
        help="A coding ticket becomes a planned, reviewed, tested pull request made by coding agents.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 needs a person.",
    )
    if wanted not in GROUPS:
        house.add_to(app)
    for name, module in GROUPS.items():
        if wanted == name or wanted not in {*GROUPS, *house.COMMANDS}:
            app.add_typer(import_module(f"beadmill.cli.{module}").app, name=name)
    return app


def run(argv: Sequence[str]) -> int:
    """The exit code: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 needs a person."""
    try:
        tree(argv[0] if argv else "")(args=list(argv), prog_name="beadmill")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BeadmillError as error:
        if "--json" in argv:
            typer.echo(json.dumps(error.envelope(), ensure_ascii=False, indent=2))
        for line in told(error):
            typer.echo(line, err=True)
        return error.exit_code
    return 0
