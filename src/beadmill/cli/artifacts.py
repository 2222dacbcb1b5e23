from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from beadmill.cli.client import Client
from beadmill.cli.common import AsJson, Most, api, group, read_file, show, table, text_of
from beadmill.errors import BeadmillError, Invalid

SHOWN = 160  # characters of a damaged line

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


@app.command("check")
def check(
    row: int,
    file: Annotated[str, typer.Option(help="The edited text; - reads standard input.")],
    as_json: AsJson = False,
) -> None:
    """Say everything that keeps a text from being saved as a new version; exit code 1 when there is something."""
    text = text_of("-") if file == "-" else read_file(file)
    answer = api().call("artifacts.check", row=row, body={"text": text})
    show(answer, as_json=as_json, text=_checked)
    if not answer["valid"]:
        raise typer.Exit(1)


def _checked(answer: Any) -> None:
    for line in _lines(answer["problems"]):
        typer.echo(line)
    if answer["valid"]:
        typer.echo("It can be saved.")


def _lines(problems: Iterable[Any]) -> Iterator[str]:
    """Two lines of a problem: where and why, and the line itself."""
    for one in problems:
        yield f"line {one['line']}, column {one['column']}: {one['reason']}" if one["line"] else one["reason"]
        if one["text"].strip():
            yield f"  | {one['text'][:SHOWN]}{'…' if len(one['text']) > SHOWN else ''}"


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
    """Save an edited version of what an open gate shows, or, with --approve, of what was approved before.

    A text that is no such document is told line by line; your editor opens again, and the text stays in its file.
    """
    client = api()
    now = client.call("artifacts.show", row=row)
    wish: dict[str, Any] = {"etag": etag or now["sha256"], "approve": approve, "note": note}
    if file:
        answer = _saved_as(client, row, read_file(file), kept=f"your text, in {file}", **wish)
    else:
        path = _draft(now)
        answer = _saved_as(client, row, _edited(client, now, path), kept=f"your text, in {path}", **wish)
        path.unlink()
    show(answer, as_json=as_json, text=_saved)


def _draft(now: Any) -> Path:
    """The text in a file that outlives a refusal."""
    import os
    import tempfile

    handle, name = tempfile.mkstemp(prefix=f"beadmill-{now['kind']}-{now['row']}-", suffix=f".{now['form']}")
    os.close(handle)
    Path(name).write_text(now["text"], encoding="utf-8")
    return Path(name)


def _edited(client: Client, now: Any, path: Path) -> str:
    """What the editor left, once it can be saved. Raises Invalid when the person gives up."""
    import click

    while True:
        click.edit(filename=str(path))
        text = read_file(str(path))
        if text == now["text"]:
            path.unlink()
            raise Invalid("the editor saved nothing", code="NOT_EDITED", kept="the document is unchanged")
        checked = client.call("artifacts.check", row=now["row"], body={"text": text})
        if checked["valid"]:
            return text
        for line in _lines(checked["problems"]):
            typer.echo(line, err=True)
        if not _again():
            raise Invalid(
                "the text is no such document",
                code="DOCUMENT_INVALID",
                kept=f"your text, in {path}",
                next=f"beadmill artifact edit {now['row']} --file {path}",
            )


def _again() -> bool:
    """No answer, as in a script, is no."""
    typer.echo("Open the editor again? [Y/n] ", err=True, nl=False)
    answer = sys.stdin.readline()
    return bool(answer) and not answer.strip().lower().startswith("n")


def _saved_as(client: Client, row: int, text: str, *, kept: str, etag: str, approve: bool, note: str) -> Any:
    body = {"text": text, "approve": approve, "note": note}
    try:
        return client.call("artifacts.edit", row=row, etag=etag, body=body)
    except BeadmillError as error:
        for line in _lines(error.details.get("problems", ())):
            typer.echo(line, err=True)
        error.kept = kept
        raise


def _saved(answer: Any) -> None:
    typer.echo(f"{answer['kind']} version {answer['version']} is row {answer['row']}.")
    for gate in answer["gates"]:
        open_ = gate["state"] == "open"
        typer.echo(f"{gate['title']} now shows it: {gate['answer_with']}" if open_ else f"{gate['title']}: approved.")
    for visit in answer["restarted"]:
        typer.echo(f"{visit.partition('/')[2]} begins; what was made before stays readable.")
