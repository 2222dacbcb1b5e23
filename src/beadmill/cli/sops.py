from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, api, group, read_file, show, table

app = group("Standard operating procedures: graphs of nodes.")


@app.command("list")
def listing(as_json: AsJson = False) -> None:
    """Every SOP that a ticket can use."""
    show(api().call("sops.listing"), as_json=as_json, text=_list)


def _list(sops: Any) -> None:
    rows = [(s["name"], "built in" if s["builtin"] else s["version"], s["title"]) for s in sops]
    table(("NAME", "VERSION", "TITLE"), rows, empty="No SOP.")


@app.command("show")
def show_(name: str, as_json: AsJson = False) -> None:
    """The YAML of a SOP."""
    show(api().call("sops.show", name=name), as_json=as_json, text=lambda s: typer.echo(s["body"], nl=False))


@app.command("lint")
def lint(name: Annotated[str, typer.Argument(help="A SOP's name, or a YAML file.")], as_json: AsJson = False) -> None:
    """Say why a SOP cannot run; exit code 1 when it cannot."""
    body = {"text": read_file(name)} if Path(name).suffix in (".yaml", ".yml") else {"name": name}
    answer = api().call("sops.check", body=body)
    show(answer, as_json=as_json, text=_lint)
    if not answer["ok"]:
        raise typer.Exit(1)


def _lint(answer: Any) -> None:
    for problem in answer["problems"]:
        where = f"{problem['line']}:{problem['column']} " if problem["line"] else ""
        typer.echo(f"{where}{problem['code']} {problem['message']}")
    if answer["ok"]:
        typer.echo("It can run.")
