from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from beadmill.cli.client import Client
from beadmill.cli.common import AsJson, api, group, show, text_of
from beadmill.errors import Conflict, Invalid

app = group("The interview of a ticket.")
Etag = Annotated[str, typer.Option(help="Answer only the batch this ETag covers; default: the one that waits now.")]


@app.command("show")
def show_(key: str, as_json: AsJson = False) -> None:
    """The questions that wait."""
    show(api().call("interviews.show", key=key), as_json=as_json, text=_one)


def _one(view: Any) -> None:
    if view["gate"] is None:
        typer.echo(f"No question of {view['ticket']} waits. Answered so far: {view['answered']}.")
        return
    for question in view["questions"]:
        typer.echo(f"{question['id']}  {question['question']}")
        for option in question.get("options", ()):
            typer.echo(f"      {option['id']}  {option['label']}")
    key, example = view["ticket"], " ".join(_example(question) for question in view["questions"])
    typer.echo(f"Answer one by one: beadmill interview answer {key}")
    typer.echo(f"or at once:        beadmill interview answer {key} {example}")


def _example(question: Any) -> str:
    options = question.get("options", ())
    return f"{question['id']}=@{options[0]['id']}" if options else f"{question['id']}='your text'"


def _taken(view: Any) -> None:
    """The engine asks on after the answer, so nothing of the next batch is known yet."""
    typer.echo(f"Your answers are kept. What comes next: beadmill ticket watch {view['ticket']} --until-gate")


def _etag(view: Any, given: str) -> str:
    if view["gate"] is None:
        raise Conflict(
            f"no question of {view['ticket']} waits",
            code="NO_QUESTIONS",
            kept="your input",
            next=f"beadmill ticket show {view['ticket']}",
        )
    etag: str = given or view["gate"]["etag"]
    return etag


@app.command("answer")
def answer(
    *,
    key: str,
    answers: Annotated[list[str] | None, typer.Argument(help="Q01=text; options by id: Q02=@a,b.")] = None,
    skip_: Annotated[list[str] | None, typer.Option("--skip", help="A question to skip. Repeatable.")] = None,
    file: Annotated[str, typer.Option(help="JSON {question: answer}; - reads standard input.")] = "",
    etag: Etag = "",
    as_json: AsJson = False,
) -> None:
    """Answer the batch that waits: by arguments, by a file, or asked one by one."""
    client = api()
    view = client.call("interviews.show", key=key)
    tag = _etag(view, etag)
    given = _given(view, answers or [], skip_ or [], file)
    body = {"answers": given}
    show(client.call("interviews.answer", key=key, etag=tag, body=body), as_json=as_json, text=_taken)


def _given(view: Any, answers: list[str], skips: list[str], file: str) -> dict[str, Any]:
    given: dict[str, Any] = _from_file(file) if file else {}
    for pair in answers:
        name, equals, text = pair.partition("=")
        if not equals:
            raise Invalid(f"{pair!r} is not of the form Q01=answer", code="ANSWER", kept="your input")
        given[name] = {"selected_option_ids": text[1:].split(",")} if text.startswith("@") else {"free_text": text}
    given |= {name: {"skipped": True} for name in skips}
    return given or _asked(view)


def _from_file(file: str) -> dict[str, Any]:
    try:
        value = json.loads(text_of(file if file == "-" else f"@{file}"))
    except ValueError as error:
        raise Invalid(f"{file} is not JSON: {error}", code="ANSWER") from error
    if not isinstance(value, dict):
        raise Invalid(f"{file} is not {{question: answer}}", code="ANSWER")
    return value


def _asked(view: Any) -> dict[str, Any]:
    """One by one, at a terminal; an empty line skips."""
    if not sys.stdin.isatty():
        raise Invalid("no answer was given", code="ANSWER", next="give Q01=…, --file, or run it at a terminal")
    given: dict[str, Any] = {}
    for question in view["questions"]:
        typer.echo(f"\n{question['id']}  {question['question']}")
        options = {option["id"]: option["label"] for option in question.get("options", ())}
        for name, label in options.items():
            typer.echo(f"  {name}  {label}")
        text = typer.prompt("Answer (empty skips)", default="", show_default=False)
        chosen = [part for part in text.replace(",", " ").split() if part in options]
        given[question["id"]] = (
            {"selected_option_ids": chosen} if chosen else {"free_text": text} if text else {"skipped": True}
        )
    return given


@app.command("skip")
def skip(
    key: str,
    questions: Annotated[list[str] | None, typer.Argument(help="Default: the whole batch.")] = None,
    reason: str = "",
    etag: Etag = "",
    as_json: AsJson = False,
) -> None:
    """Skip questions of the batch; the council answers them itself."""
    client = api()
    tag = _waiting(client, key, etag)
    body = {"questions": questions or [], "reason": reason}
    show(client.call("interviews.skip", key=key, etag=tag, body=body), as_json=as_json, text=_taken)


@app.command("skip-all")
def skip_all(key: str, reason: str = "", etag: Etag = "", as_json: AsJson = False) -> None:
    """End the interview; everything open is left to the council."""
    client = api()
    tag = _waiting(client, key, etag)
    answer_ = client.call("interviews.skip_all", key=key, etag=tag, body={"reason": reason})
    show(answer_, as_json=as_json, text=_taken)


def _waiting(client: Client, key: str, given: str) -> str:
    return _etag(client.call("interviews.show", key=key), given)
