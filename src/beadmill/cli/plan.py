"""Changing a plan that is being built, one verb per kind of change."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from beadmill.cli.beads import Run, app, listed
from beadmill.cli.common import AsJson, api, read_file, run_of, show, text_of
from beadmill.errors import Invalid

Bead = Annotated[str, typer.Argument(help="The bead's id.")]
Note = Annotated[str, typer.Option(help="Why; kept with the change.")]
File = Annotated[str, typer.Option(help="YAML or JSON; - reads standard input.")]


@app.command("skip")
def skip(run: Run, bead: Bead, note: Note = "", as_json: AsJson = False) -> None:
    """Do not build a bead; nothing waits for it any more. The run must be paused, or blocked in its build."""
    _change(run, {"do": "skip", "bead": bead}, note=note, as_json=as_json)


@app.command("unskip")
def unskip(run: Run, bead: Bead, note: Note = "", as_json: AsJson = False) -> None:
    """Build a skipped bead after all."""
    _change(run, {"do": "unskip", "bead": bead}, note=note, as_json=as_json)


@app.command("edit")
def edit(run: Run, bead: Bead, file: File, note: Note = "", as_json: AsJson = False) -> None:
    """Replace fields of a bead that is not done, for example its description or testCommands."""
    _change(run, {"do": "edit", "bead": bead, "fields": _read(file, dict)}, note=note, as_json=as_json)


@app.command("add")
def add(
    run: Run,
    file: File,
    before: Annotated[str, typer.Option(help="The bead that it comes before; default: at the end.")] = "",
    note: Note = "",
    as_json: AsJson = False,
) -> None:
    """Put one more bead into the plan."""
    _change(run, {"do": "add", "fields": _read(file, dict), "before": before}, note=note, as_json=as_json)


@app.command("split")
def split(run: Run, bead: Bead, file: File, note: Note = "", as_json: AsJson = False) -> None:
    """Put the beads of a list in the place of one; what they do not say is as in that one."""
    _change(run, {"do": "split", "bead": bead, "into": _read(file, list)}, note=note, as_json=as_json)


@app.command("order")
def order(run: Run, beads: list[str], note: Note = "", as_json: AsJson = False) -> None:
    """Let these beads take, in this order, the places that they have now among themselves."""
    _change(run, {"do": "order", "beads": beads}, note=note, as_json=as_json)


def _change(run: str, change: dict[str, Any], *, note: str, as_json: bool) -> None:
    client = api()
    found = run_of(client, run)
    plans = client.call("artifacts.listing", query={"run": found, "kind": "beads", "limit": 200})["items"]
    if not plans:
        raise Invalid("there is no plan yet", code="NO_PLAN", kept="nothing was changed")
    body = {"changes": [change], "note": note}
    answer = client.call("beads.replan", run=found, etag=plans[-1]["sha256"], body=body)
    show(answer, as_json=as_json, text=lambda beads: _told(beads, run))


def _told(beads: Any, run: str) -> None:
    listed(beads)
    typer.echo(f"The plan is changed. Go on: beadmill run resume {run} (or run retry {run} at a blocked gate).")


def _read(file: str, wanted: type) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    text = text_of("-") if file == "-" else read_file(file)
    try:
        value = json.loads(text) if text.lstrip()[:1] in ("{", "[") else YAML(typ="safe").load(text)
    except (ValueError, YAMLError) as error:
        raise Invalid(f"{file} is neither YAML nor JSON: {error}", code="BAD_FILE", kept="the plan") from error
    if not isinstance(value, wanted):
        kind = "a mapping of fields" if wanted is dict else "a list of beads"
        raise Invalid(f"{file} does not hold {kind}", code="BAD_FILE", kept="the plan")
    return value
