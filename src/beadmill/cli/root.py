"""The command tree, and the one place where errors become words and exit codes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer

from beadmill.cli import (
    agents,
    artifacts,
    beads,
    config,
    gates,
    house,
    interviews,
    projects,
    prompts,
    runs,
    sessions,
    sops,
    tickets,
)
from beadmill.cli.daemon import told
from beadmill.errors import BeadmillError

app = typer.Typer(
    name="beadmill",
    help="A coding ticket becomes a planned, reviewed, tested pull request made by coding agents.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 needs a person.",
)
house.add_to(app)
for name, part in (
    ("project", projects.app),
    ("ticket", tickets.app),
    ("gate", gates.app),
    ("interview", interviews.app),
    ("bead", beads.app),
    ("run", runs.app),
    ("artifact", artifacts.app),
    ("session", sessions.app),
    ("sop", sops.app),
    ("agent", agents.app),
    ("config", config.app),
    ("prompt", prompts.app),
):
    app.add_typer(part, name=name)


def run(argv: Sequence[str]) -> int:
    """The exit code: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 needs a person."""
    try:
        app(args=list(argv), prog_name="beadmill")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BeadmillError as error:
        if "--json" in argv:
            typer.echo(json.dumps(error.envelope(), ensure_ascii=False, indent=2))
        for line in told(error):
            typer.echo(line, err=True)
        return error.exit_code
    return 0
