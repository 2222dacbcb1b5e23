from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from beadmill.cli.client import Client
from beadmill.cli.common import AsJson, api, group, show
from beadmill.errors import Conflict, Invalid, NotFound

app = group("Manual QA of a ticket: a checklist, your results, files beside them.")
Item = Annotated[str, typer.Argument(help="The item's id, or its number.")]
Etag = Annotated[str, typer.Option(help="Decide only on the checklist this ETag covers; default: the one that waits.")]
MARKS = {"pending": " ", "pass": "+", "fail": "x", "waive": "~", "improvement": "*"}


@app.command("show")
def show_(key: str, as_json: AsJson = False) -> None:
    """The checklist with what was found so far, files, and what is left to do."""
    show(api().call("qa.show", key=key), as_json=as_json, text=_one)


def _one(view: Any) -> None:
    for one in view["rounds"]:
        typer.echo(one["line"])
    if view["checklist"] is None:
        typer.echo(f"{view['ticket']} has no checklist.")
        return
    if view["gate"] is None and view["drift"] is None:
        return
    typer.echo(f"v{view['version']}  {view['checklist']['summary']}")
    if view["worktree"]:
        typer.echo(f"Try it in {view['worktree']}")
    results = {one["item"]: one for one in view["results"]}
    for item in view["checklist"]["items"]:
        _item(item, results[item["id"]], [one for one in view["evidence"] if one["item"] == item["id"]])
    typer.echo("Criteria: " + ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in view["coverage"].items()))
    _next(view)


def _item(item: Any, result: Any, files: list[Any]) -> None:
    severity = "" if item["severity"] == "required" else " (optional)"
    typer.echo(f"[{MARKS[result['outcome']]}] {item['id']}  {item['title']}{severity}")
    for line in item["prerequisites"]:
        typer.echo(f"      before: {line}")
    for n, line in enumerate(item["actions"], 1):
        typer.echo(f"      {n}. {line}")
    typer.echo(f"      expect: {item['expected_result']}")
    for name in ("observation", "reason", "note"):
        if result[name]:
            typer.echo(f"      {name}: {result[name]}")
    for one in files:
        typer.echo(f"      file {one['id']}  {one['name']}  {one['size']} bytes")


def _next(view: Any) -> None:
    key = view["ticket"]
    if view["drift"] is not None:
        paths = ", ".join(view["drift"]["detail"]["paths"])
        typer.echo(f"The worktree changed: {paths}")
        typer.echo(f"beadmill qa include {key}, or beadmill qa discard {key}")
        return
    for problem in view["problems"]:
        typer.echo(f"left: {problem}")
    typer.echo(f"beadmill qa set {key} ITEM --pass | --fail 'what you saw' | --waive 'why' | --improve 'title'")
    typer.echo(f"beadmill qa submit {key}")


@app.command("set")
def set_(
    *,
    key: str,
    item: Item,
    passed: Annotated[bool, typer.Option("--pass", help="It is as expected.")] = False,
    pending: Annotated[bool, typer.Option("--pending", help="Not checked after all.")] = False,
    fail: Annotated[str, typer.Option(help="It failed: what you saw instead.")] = "",
    waive: Annotated[str, typer.Option(help="It is let through: why.")] = "",
    improve: Annotated[str, typer.Option(help="It could be better: the title of a ticket for later.")] = "",
    description: Annotated[str, typer.Option(help="With --improve: the ticket's description.")] = "",
    priority: Annotated[int, typer.Option(min=1, max=5, help="With --improve: the ticket's priority.")] = 3,
    note: Annotated[str | None, typer.Option(help="Anything else worth keeping.")] = None,
    link: Annotated[list[str] | None, typer.Option("--link", help="An http or https address. Repeatable.")] = None,
    group_: Annotated[str, typer.Option("--group", help="With --fail: failures of one name become one fix.")] = "",
    as_json: AsJson = False,
) -> None:
    """Say what you found at one item. It is saved at once and sent with submit."""
    chosen = {"pass": passed, "pending": pending, "fail": fail, "waive": waive, "improvement": improve}
    outcomes = [name for name, given in chosen.items() if given]
    if len(outcomes) > 1 or not (outcomes or note is not None or link):
        raise Invalid("say one of --pass, --fail, --waive, --improve, --pending", code="QA_RESULT", kept="your input")
    client = api()
    view = client.call("qa.show", key=key)
    name = _id(view, item)
    result = _before(view, name)
    if outcomes:
        result |= {"outcome": outcomes[0], "group": group_, "observation": fail, "reason": waive, "improvement": None}
    if improve:
        result["improvement"] = {"title": improve, "description": description, "priority": priority}
    result |= {"note": note} if note is not None else {}
    result |= {"links": [{"url": url} for url in link]} if link else {}
    body = {"results": {name: result}, "revision": view["revision"]}
    show(client.call("qa.save", key=key, body=body), as_json=as_json, text=_saved)


def _before(view: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(dict(one) for one in view["results"] if one["item"] == name)
    return found


def _saved(view: Any) -> None:
    counted = ", ".join(f"{n} {name}" for name, n in view["counts"].items() if n)
    typer.echo(f"Saved: {counted}.")


def _id(view: Any, item: str) -> str:
    if view["checklist"] is None:
        raise Conflict(f"{view['ticket']} has no checklist", code="NO_QA", kept="your input")
    return f"qa-v{view['version']}-{int(item):03}" if item.isdecimal() else item


@app.command("attach")
def attach(key: str, item: Item, file: Path, as_json: AsJson = False) -> None:
    """Add a file to an item: a picture, a recording, a log; at most 250 MiB. It is kept as it is."""
    client = api()
    name = _id(client.call("qa.show", key=key), item)
    try:
        opened = file.open("rb")
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error}", code="FILE") from error
    with opened:
        said = client.send("qa.upload", opened, key=key, item=name, query={"name": file.name})
    show(said, as_json=as_json, text=lambda one: typer.echo(f"{one['id']}  {one['name']}  {one['size']} bytes"))


@app.command("fetch")
def fetch(
    key: str,
    file: Annotated[str, typer.Argument(help="The file's id, as qa show lists it.")],
    into: Annotated[Path | None, typer.Argument(help="Where to write it; default: standard output.")] = None,
) -> None:
    """Write a file of the round, or of a ticket that came of it."""
    client = api()
    if into is None:
        client.save("qa.evidence", sys.stdout.buffer, key=key, file=file)
        return
    if into.exists():
        raise Conflict(f"{into} is there already", code="FILE_EXISTS", kept="that file", next="choose another name")
    part = into.with_name(f".{into.name}.part")
    try:
        with part.open("wb") as out:
            client.save("qa.evidence", out, key=key, file=file)
        part.replace(into)
    finally:
        part.unlink(missing_ok=True)


@app.command("detach")
def detach(key: str, file: Annotated[str, typer.Argument(help="The file's id.")], as_json: AsJson = False) -> None:
    """Take a file of the round away."""
    show(api().call("qa.remove", key=key, file=file), as_json=as_json, text=lambda _: typer.echo("Removed."))


@app.command("submit")
def submit(key: str, etag: Etag = "", as_json: AsJson = False) -> None:
    """Send the results: failures become beads, improvements become draft tickets, and the run goes on."""
    client = api()
    view, tag = _waiting(client, key, etag)
    body = {"revision": view["revision"]}
    show(client.call("qa.submit", key=key, etag=tag, body=body), as_json=as_json, text=_sent)


@app.command("skip")
def skip(key: str, reason: str = "", etag: Etag = "", as_json: AsJson = False) -> None:
    """Go on without the rest of the check. What was entered is kept; nothing is made of it."""
    client = api()
    view, tag = _waiting(client, key, etag)
    body = {"revision": view["revision"], "reason": reason}
    show(client.call("qa.skip", key=key, etag=tag, body=body), as_json=as_json, text=_sent)


def _sent(view: Any) -> None:
    typer.echo(f"Sent. What comes next: beadmill ticket watch {view['ticket']} --until-gate")


def _waiting(client: Client, key: str, etag: str) -> tuple[Any, str]:
    view = client.call("qa.show", key=key)
    if view["gate"] is None:
        raise Conflict(
            f"no manual QA of {key} waits for results",
            code="NO_QA",
            kept="what was entered",
            next=f"beadmill ticket show {key}",
        )
    return view, etag or view["gate"]["etag"]


@app.command("include")
def include(
    key: str,
    paths: Annotated[list[str] | None, typer.Argument(help="Only these; the others are discarded.")] = None,
) -> None:
    """Take changes that were made in the worktree during the check into the delivered change."""
    _drift(key, "include", {"paths": paths} if paths else None)


@app.command("discard")
def discard(key: str) -> None:
    """Take changes that were made in the worktree during the check out of it, behind an undo ref."""
    _drift(key, "discard", None)


def _drift(key: str, choice: str, payload: Any) -> None:
    client = api()
    view = client.call("qa.show", key=key)
    if view["drift"] is None:
        raise NotFound(f"no change of the worktree of {key} waits for a decision", code="NO_DRIFT")
    body = {"choice": choice, "payload": payload}
    client.call("gates.answer", gate=view["drift"]["id"], etag=view["drift"]["etag"], body=body)
    _sent(view)
