from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, Most, api, fields, gate_of, group, show, table, text_of
from beadmill.errors import Conflict

app = group("What waits for a person. A gate is named by its id, or by its ticket when only one is open.")
Gate = Annotated[str, typer.Argument(help="The gate's id, or a ticket's key.")]
Etag = Annotated[str, typer.Option(help="Decide only on what this ETag covers; default: what is shown now.")]
YES = ("approve", "approved", "continue", "ready", "merge", "pass")


@app.command("list")
def listing(
    project: str = "",
    ticket: str = "",
    state: Annotated[str, typer.Option(help="open, answered or withdrawn.")] = "open",
    limit: Most = 50,
    as_json: AsJson = False,
) -> None:
    """The inbox: what waits longest comes first."""
    query = {"project": project, "ticket": ticket, "state": state, "limit": limit}
    show(api().call("gates.listing", query=query), as_json=as_json, text=_list)


def _list(answer: Any) -> None:
    rows = [(g["ticket"], g["kind"], g["title"], "|".join(g["choices"]), g["id"]) for g in answer["items"]]
    table(("TICKET", "KIND", "QUESTION", "CHOICES", "GATE"), rows, empty="Nothing waits for you.")


@app.command("show")
def show_(gate: Gate, as_json: AsJson = False) -> None:
    """One gate: what it asks, what it shows, how to answer."""
    show(gate_of(api(), gate), as_json=as_json, text=_one)


def _one(gate: Any) -> None:
    decision = gate["decision"] or {}
    fields(
        [
            ("gate", gate["id"]),
            ("asks", gate["title"]),
            ("kind", gate["kind"]),
            ("node", gate["node"]),
            ("state", gate["state"]),
            ("choices", ", ".join(gate["choices"])),
            ("lapses", f"{gate['lapse_at']} → {gate['lapse']}" if gate["lapse_at"] else ""),
            ("answer", f"{decision.get('choice')} by {decision.get('actor')}" if decision else ""),
            ("note", decision.get("note")),
        ]
    )
    for shown in gate["shows"]:
        typer.echo(f"shows  {shown['kind']} version {shown['version']}: beadmill artifact show {shown['row']}")
    if gate["kind"] == "interview":
        typer.echo(f"Questions: beadmill interview show {gate['ticket']}")
    else:
        for line in _lines(gate["detail"]):
            typer.echo(f"  {line}")
    if gate["state"] == "open":
        typer.echo(f"Answer: {gate['answer_with']}")


HIDDEN = ("forget", "continuable", "message")  # of a blocked gate: for the engine, or said by the title


def _lines(detail: Any) -> Iterator[str]:
    """What a gate says beside its documents, as indented lines; what is empty is left out."""
    pairs = detail.items() if isinstance(detail, dict) else [("-", one) for one in detail or ()]
    for name, value in pairs:
        mark = name if name == "-" else f"{name.replace('_', ' ')}:"
        if value in (None, "", [], {}) or name in HIDDEN:
            continue
        if isinstance(value, (dict, list)):
            yield mark
            yield from (f"  {line}" for line in _lines(value))
        else:
            yield f"{mark} {'; '.join(str(value).splitlines())}"


@app.command("approve")
def approve(gate: Gate, note: str = "", etag: Etag = "", as_json: AsJson = False) -> None:
    """Say yes to what the gate shows now."""
    client = api()
    found = gate_of(client, gate)
    choice = next((c for c in YES if c in found["choices"]), "")
    if not choice:
        raise Conflict(
            f"this gate has no plain yes: it takes {', '.join(found['choices'])}",
            code="NO_YES",
            next=f"beadmill gate answer {found['id']} <choice>",
        )
    body = {"choice": choice, "note": note}
    answer = client.call("gates.answer", gate=found["id"], etag=etag or found["etag"], body=body)
    show(answer, as_json=as_json, text=_one)


@app.command("answer")
def answer(
    *,
    gate: Gate,
    choice: str,
    note: Annotated[str, typer.Option(help="A note that is kept with the decision.")] = "",
    payload: Annotated[str, typer.Option(help="JSON of the gate's form; - reads standard input, @file a file.")] = "",
    etag: Etag = "",
    as_json: AsJson = False,
) -> None:
    """Give one of the gate's choices."""
    client = api()
    found = gate_of(client, gate)
    body = {"choice": choice, "note": note, "payload": _payload(payload)}
    said = client.call("gates.answer", gate=found["id"], etag=etag or found["etag"], body=body)
    show(said, as_json=as_json, text=_one)


def _payload(given: str) -> Any:
    if not given:
        return None
    try:
        return json.loads(text_of(given))
    except ValueError as error:
        raise typer.BadParameter(f"the payload is not JSON: {error}") from error


@app.command("send-back")
def send_back(
    gate: Gate,
    node: Annotated[str, typer.Argument(help="The node that shall start again.")],
    comment: Annotated[str, typer.Option(help="Why: the node reads it.")] = "",
    etag: Etag = "",
    as_json: AsJson = False,
) -> None:
    """Send the run back to a node; what lies behind it is superseded, never overwritten."""
    client = api()
    found = gate_of(client, gate)
    body = {"target": node, "comment": comment}
    run = client.call("gates.send_back", gate=found["id"], etag=etag or found["etag"], body=body)
    show(run, as_json=as_json, text=lambda r: typer.echo(f"{r['id']} goes back to {node}."))
