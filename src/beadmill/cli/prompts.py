from __future__ import annotations

from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, api, fields, group, read_file, run_of, show, table
from beadmill.errors import Invalid

app = group("What agents are told: templates you may edit. Edits count for runs that start after them.")
Name = Annotated[str, typer.Argument(help="The prompt, as prompt list names it.")]
Etag = Annotated[str, typer.Option(help="The sha256 of the version you edited; default: the one shown now.")]


@app.command("list")
def listing(as_json: AsJson = False) -> None:
    """Every prompt, what it is for, and which are edited."""
    show(api().call("prompts.listing"), as_json=as_json, text=_list)


def _list(answer: Any) -> None:
    rows = [(p["stage"], p["name"], _state(p), p["purpose"]) for p in answer["prompts"]]
    table(("STAGE", "PROMPT", "STATE", "WHAT IT IS FOR"), rows, empty="No prompt.")
    for prompt in answer["prompts"]:
        for line in _told(prompt):
            typer.echo(f"! {prompt['name']}: {line}")
    for name in answer["strangers"]:
        typer.echo(f"! {name} is no prompt and changes nothing")
    typer.echo(f"Edited ones are files in {answer['folder']}")


def _state(prompt: Any) -> str:
    if prompt["fault"]:
        return "broken"
    return "edited" if prompt["modified"] else "built in"


def _told(prompt: Any) -> list[str]:
    fault = prompt["fault"]
    where = f"line {fault['line']}: " if fault and fault["line"] else ""
    broken = [f"cannot be used, the built-in text is: {where}{fault['reason']}"] if fault else []
    changed = ["the built-in text has changed since it was edited"] if prompt["built_in_changed"] else []
    return [*broken, *prompt["warnings"], *changed]


@app.command("show")
def show_(
    name: Name,
    diff: Annotated[bool, typer.Option("--diff", help="What the edit changed of the built-in text.")] = False,
    built_in: Annotated[bool, typer.Option("--built-in", help="The text that ships with Beadmill.")] = False,
    about: Annotated[bool, typer.Option("--about", help="What it is for and what it may be given.")] = False,
    as_json: AsJson = False,
) -> None:
    """The text that counts for runs that start now."""
    answer = api().call("prompts.show", name=name)
    if about and not as_json:
        _about(answer)
        return
    text = (answer["diff"] or "It is as built in.\n") if diff else answer["built_in" if built_in else "text"]
    show(answer, as_json=as_json, text=lambda _: typer.echo(text, nl=not text.endswith("\n")))


def _about(prompt: Any) -> None:
    fields(
        [
            ("prompt", prompt["name"]),
            ("stage", prompt["stage"]),
            ("for", prompt["purpose"]),
            ("state", _state(prompt)),
            ("may be given", ", ".join(prompt["parts"])),
            ("never dropped", ", ".join(prompt["needs"])),
            ("values", ", ".join(prompt["values"])),
            ("includes", ", ".join(prompt["includes"])),
            ("used by", ", ".join(prompt["used_by"])),
            ("sha256", prompt["sha256"]),
        ]
    )
    for line in _told(prompt):
        typer.echo(f"! {line}")
    if prompt["news"]:
        typer.echo(f"What changed in the built-in text since:\n{prompt['news']}", nl=False)


@app.command("edit")
def edit(
    name: Name,
    file: Annotated[str, typer.Option(help="The edited text; default: your editor opens.")] = "",
    etag: Etag = "",
    as_json: AsJson = False,
) -> None:
    """Save an edited text. It is checked first; what it no longer does is warned of."""
    client = api()
    now = client.call("prompts.show", name=name)
    text = read_file(file) if file else _edited(now["text"])
    answer = client.call("prompts.save", name=name, etag=etag or now["sha256"], body={"text": text})
    show(answer, as_json=as_json, text=_saved)


def _edited(text: str) -> str:
    import click

    edited: str | None = click.edit(text, extension=".md.j2")
    if edited is None:
        raise Invalid("the editor saved nothing", code="NOT_EDITED", kept="the prompt is unchanged")
    return edited


def _saved(prompt: Any) -> None:
    typer.echo(f"{prompt['name']} is saved; runs that start from now on use it.")
    for line in _told(prompt):
        typer.echo(f"! {line}")


@app.command("preview")
def preview(
    name: Name,
    file: Annotated[str, typer.Option(help="A text that is not saved yet.")] = "",
    run: Annotated[str, typer.Option(help="Take the material of this run, or of this ticket's.")] = "",
    as_json: AsJson = False,
) -> None:
    """The whole prompt as an agent would get it, with sample material or that of a run."""
    client = api()
    body = {"text": read_file(file) if file else None, "run": run_of(client, run) if run else ""}
    show(client.call("prompts.preview", name=name, body=body), as_json=as_json, text=_previewed)


def _previewed(answer: Any) -> None:
    typer.echo(answer["text"], nl=False)
    of = "sample material" if answer["material"] == "sample" else f"the material of {answer['material']}"
    typer.echo(f"About {answer['tokens']:,} tokens, with {of}.", err=True)
    for line in answer["warnings"]:
        typer.echo(f"! {line}", err=True)


@app.command("revert")
def revert(name: Name, etag: Etag = "", as_json: AsJson = False) -> None:
    """Back to the built-in text. The edit is kept in a file."""
    client = api()
    etag = etag or client.call("prompts.show", name=name)["sha256"]
    show(client.call("prompts.revert", name=name, etag=etag), as_json=as_json, text=_reverted)


def _reverted(prompt: Any) -> None:
    kept = f" Your edit is kept: {prompt['kept']}" if prompt["kept"] else " It was not edited."
    typer.echo(f"{prompt['name']} is as built in.{kept}")


@app.command("reset")
def reset(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Every prompt back to its built-in text. The edits are kept in files."""
    client = api()
    edited = [p["name"] for p in client.call("prompts.listing")["prompts"] if p["modified"]]
    if edited and not yes:
        typer.confirm(f"Take back the edits of {', '.join(edited)}?", abort=True)
    answer = client.call("prompts.reset")
    show(
        answer,
        as_json=as_json,
        text=lambda a: typer.echo(f"All are as built in. Edits are kept in {a['folder']}/reverted."),
    )
