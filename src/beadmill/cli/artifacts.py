from __future__ import annotations

from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, Most, api, group, read_file, show, table
from beadmill.errors import Invalid

app = group("Documents that runs make: versioned and hashed.")


@app.command("list")
def listing(ticket: str = "", run: str = "", kind: str = "", limit: Most = 200, as_json: AsJson = False) -> None:
    """Documents of a ticket's current run, or of a run."""
    query = {"ticket": ticket, "run": run, "kind": kind, "limit": limit}
    show(api().call("artifacts.listing", query=query), as_json=as_json, text=_list)


def _list(answer: Any) -> None:
    rows = [
        (a["row"], a["kind"], a["version"], a["author"], a["visit"].partition("/")[2], a["created"][:19])
        for a in answer["items"]
    ]
    table(("ROW", "KIND", "VERSION", "BY", "VISIT", "AT"), rows, empty="No document yet.")


@app.command("show")
def show_(
    row: int,
    raw: Annotated[bool, typer.Option("--raw", help="The canonical bytes that are hashed.")] = False,
    as_json: AsJson = False,
) -> None:
    """One document as people read it."""
    client = api()
    if raw:
        typer.echo(client.text("artifacts.raw", row=row), nl=False)
        return
    show(client.call("artifacts.show", row=row), as_json=as_json, text=lambda a: typer.echo(a["text"], nl=False))


@app.command("diff")
def diff(
    row: int,
    against: Annotated[int | None, typer.Option(help="Another row; default: the version it came from.")] = None,
    as_json: AsJson = False,
) -> None:
    """What changed."""
    answer = api().call("artifacts.diff", row=row, query={"against": against})
    show(answer, as_json=as_json, text=lambda a: typer.echo(a["diff"] or "no difference"))


@app.command("edit")
def edit(
    *,
    row: int,
    file: Annotated[str, typer.Option(help="The edited text; default: your editor opens.")] = "",
    etag: Annotated[str, typer.Option(help="The sha256 of the version you edited; default: the one shown now.")] = "",
    approve: Annotated[
        bool,
        typer.Option(
            "--approve",
            help="Approve it in the same action. An interview or PRD approved before: what follows is made anew.",
        ),
    ] = False,
    note: Annotated[str, typer.Option(help="Kept with the approval; what begins anew reads it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Save an edited version of what an open gate shows, or, with --approve, of what was approved before."""
    client = api()
    now = client.call("artifacts.show", row=row)
    text = read_file(file) if file else _edited(now)
    answer = client.call(
        "artifacts.edit", row=row, etag=etag or now["sha256"], body={"text": text, "approve": approve, "note": note}
    )
    show(answer, as_json=as_json, text=_saved)


def _edited(now: Any) -> str:
    import click

    text: str | None = click.edit(now["text"], extension=f".{now['form']}")
    if text is None:
        raise Invalid("the editor saved nothing", code="NOT_EDITED", kept="the document is unchanged")
    return text


def _saved(answer: Any) -> None:
    typer.echo(f"{answer['kind']} version {answer['version']} is row {answer['row']}.")
    for gate in answer["gates"]:
        open_ = gate["state"] == "open"
        typer.echo(f"{gate['title']} now shows it: {gate['answer_with']}" if open_ else f"{gate['title']}: approved.")
    for visit in answer["restarted"]:
        typer.echo(f"{visit.partition('/')[2]} begins; what was made before stays readable.")
