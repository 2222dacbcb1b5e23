from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from beadmill.cli.client import Client
from beadmill.cli.common import AsJson, api, group, show, text_of
from beadmill.errors import Conflict, Invalid

app = group("The interview of a ticket.")
PAIRS = "Q01=text; options by id, with a note if you like: Q02='@a,b note'."
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
    answers: Annotated[list[str] | None, typer.Argument(help=PAIRS)] = None,
    skip_: Annotated[
        list[str] | None, typer.Option("--skip", help='A question to skip: Q01, or Q01="why". Repeatable.')
    ] = None,
    file: Annotated[str, typer.Option(help="JSON {question: answer}; - reads standard input.")] = "",
    etag: Etag = "",
    as_json: AsJson = False,
) -> None:
    """Answer what waits: by arguments, by a file, or, without either, in a form that stays until the interview is
    over. Each answer is saved as you give it; Ctrl-C detaches."""
    client = api()
    if not (answers or skip_ or file):
        raise typer.Exit(_form(client, key))
    tag = _etag(client.call("interviews.show", key=key), etag)
    given = _given(answers or [], skip_ or [], file)
    said = client.call("interviews.answer", key=key, etag=tag, body={"answers": given})
    show(said, as_json=as_json, text=_taken)


def _form(client: Client, key: str) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Invalid(
            "no answer was given, and there is no terminal to ask at",
            code="ANSWER",
            kept="the batch waits",
            next=f"beadmill interview show {key}, then give Q01=… or --file",
        )
    from beadmill.cli._screen import Screen
    from beadmill.cli.interview_form import converse

    return converse(client, key, Screen(client, key))


@app.command("edit")
def edit(
    key: str,
    answers: Annotated[list[str], typer.Argument(help=PAIRS)],
    skip_: Annotated[
        list[str] | None, typer.Option("--skip", help='To be skipped after all: Q01, or Q01="why".')
    ] = None,
    etag: Etag = "",
    as_json: AsJson = False,
) -> None:
    """Change answers of earlier batches; the batch that waits is put again."""
    client = api()
    tag = _waiting(client, key, etag)
    said = client.call("interviews.edit", key=key, etag=tag, body={"edits": _given(answers, skip_ or [], "")})
    show(said, as_json=as_json, text=_taken)


def _given(answers: list[str], skips: list[str], file: str) -> dict[str, Any]:
    given: dict[str, Any] = _from_file(file) if file else {}
    for pair in answers:
        name, equals, text = pair.partition("=")
        if not equals:
            raise Invalid(f"{pair!r} is not of the form Q01=answer", code="ANSWER", kept="your input")
        given[name] = _answer(text)
    for pair in skips:
        name, _, reason = pair.partition("=")
        given[name] = {"skipped": True, "skip_reason": reason}
    return given


def _answer(text: str) -> dict[str, Any]:
    if not text.startswith("@"):
        return {"free_text": text}
    options, _, note = text[1:].partition(" ")
    return {"selected_option_ids": options.split(","), "free_text": note.strip()}


def _from_file(file: str) -> dict[str, Any]:
    try:
        value = json.loads(text_of(file if file == "-" else f"@{file}"))
    except ValueError as error:
        raise Invalid(f"{file} is not JSON: {error}", code="ANSWER") from error
    if not isinstance(value, dict):
        raise Invalid(f"{file} is not {{question: answer}}", code="ANSWER")
    return value


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
def skip_all(
    key: str,
    answers: Annotated[
        list[str] | None, typer.Argument(help=f"What is answered before the rest is skipped: {PAIRS}")
    ] = None,
    reason: str = "",
    etag: Etag = "",
    as_json: AsJson = False,
) -> None:
    """End the interview; everything open is left to the council."""
    client = api()
    tag = _waiting(client, key, etag)
    body = {"answers": _given(answers or [], [], ""), "reason": reason}
    show(client.call("interviews.skip_all", key=key, etag=tag, body=body), as_json=as_json, text=_taken)


def _waiting(client: Client, key: str, given: str) -> str:
    return _etag(client.call("interviews.show", key=key), given)
