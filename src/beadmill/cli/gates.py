from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, Most, api, fields, gate_of, group, show, table, text_of
from beadmill.errors import Conflict, Invalid

app = group("What waits for a person. A gate is named by its id, or by its ticket when only one is open.")
Gate = Annotated[str, typer.Argument(help="The gate's id, or a ticket's key.")]
Etag = Annotated[str, typer.Option(help="Decide only on what this ETag covers; default: what is shown now.")]
WITH_GAPS = "approve_with_gaps"
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
            ("lapses", _lapses(gate)),
            ("answer", f"{decision['choice']} by {decision['actor']} at {decision['at'][:19]}" if decision else ""),
            ("why" if decision.get("made_by") == "policy" else "note", decision.get("note")),
        ]
    )
    for shown in gate["shows"]:
        typer.echo(f"shows  {shown['kind']} version {shown['version']}: beadmill artifact show {shown['row']}")
    if gate["kind"] == "interview":
        typer.echo(f"Questions: beadmill interview show {gate['ticket']}")
    else:
        for line in _lines(gate["detail"]):
            typer.echo(f"  {line}")
    for gap in decision.get("acknowledged", ()):
        typer.echo(f"  approved with: {gap}")
    if gate["state"] == "open":
        for n, one in enumerate(_undecided(gate), 1):
            typer.echo(f"  Only you can settle this ({n}): {one['gap']}\n    {one['rationale']}")
        if _undecided(gate):
            typer.echo(f"Decide: beadmill gate decide {gate['id']}")
        typer.echo(f"Answer: {gate['answer_with']}")


def _lapses(gate: Any) -> str:
    if gate["lapse"] is None or gate["state"] != "open":
        return ""
    return f"{gate['lapse_at']} → {gate['lapse']}" if gate["lapse_at"] else "the clock is stopped: it waits for you"


def _undecided(gate: Any) -> list[Any]:
    """The contradictions that a gate puts to the person."""
    detail = gate["detail"] if isinstance(gate["detail"], dict) else {}
    return list(detail.get("unresolved", ())) if gate["kind"] == "approve" else []


HIDDEN = ("forget", "continuable", "message", "unresolved")  # for the engine, said by the title, or asked below


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
def approve(
    gate: Gate,
    with_gaps: Annotated[
        bool, typer.Option("--with-gaps", help="Also when gaps or contradictions are open; the receipt names them.")
    ] = False,
    note: Annotated[str, typer.Option(help="Why; at most 20,000 characters.")] = "",
    etag: Etag = "",
    as_json: AsJson = False,
) -> None:
    """Say yes to what the gate shows now."""
    client = api()
    found = gate_of(client, gate)
    choice = next((c for c in (*YES, *((WITH_GAPS,) if with_gaps else ())) if c in found["choices"]), "")
    if not choice and WITH_GAPS in found["choices"]:
        raise _gaps_open(found)
    if not choice:
        raise Conflict(
            f"this gate has no plain yes: it takes {', '.join(found['choices'])}",
            code="NO_YES",
            next=f"beadmill gate answer {found['id']} <choice>",
        )
    body = {"choice": choice, "note": note}
    answer = client.call("gates.answer", gate=found["id"], etag=etag or found["etag"], body=body)
    show(answer, as_json=as_json, text=_one)


def _gaps_open(gate: Any) -> Conflict:
    open_ = list(dict.fromkeys((*gate["detail"].get("gaps", ()), *(one["gap"] for one in _undecided(gate)))))
    listed = "".join(f"\n  {n}. {gap}" for n, gap in enumerate(open_, 1))
    ways = [f"beadmill gate approve {gate['id']} --with-gaps"]
    ways += [f"beadmill gate decide {gate['id']}"] if _undecided(gate) else []
    ways += [f"beadmill gate answer {gate['id']} fix_gaps"] if "fix_gaps" in gate["choices"] else []
    return Conflict(
        f"{len(open_)} {'is' if len(open_) == 1 else 'are'} open:{listed}",
        code="GAPS_OPEN",
        kept="nothing was decided",
        next=", or ".join(ways),
    )


@app.command("decide")
def decide(
    gate: Gate,
    say: Annotated[
        list[str], typer.Option("--say", help="N=TEXT decides contradiction N; without any, each one is asked here.")
    ] = [],  # noqa: B006
    note: str = "",
    etag: Etag = "",
    as_json: AsJson = False,
) -> None:
    """Settle the contradictions that only you can settle, and have the document revised by your words."""
    client = api()
    found = gate_of(client, gate)
    asked = _undecided(found)
    if not asked:
        raise Conflict("this gate asks for no decision", code="NOTHING_UNDECIDED", next=found["answer_with"])
    said = _numbered(say, asked) if say else _prompted(asked)
    body = {"choice": "fix_gaps", "note": note, "payload": {"decisions": said}}
    answer = client.call("gates.answer", gate=found["id"], etag=etag or found["etag"], body=body)
    show(answer, as_json=as_json, text=_one)


def _numbered(pairs: list[str], asked: list[Any]) -> dict[str, str]:
    said = {}
    for pair in pairs:
        number, equals, text = pair.partition("=")
        if not equals or not number.isdecimal() or not 1 <= int(number) <= len(asked):
            raise typer.BadParameter(f"{pair!r}: N=TEXT with N from 1 to {len(asked)}")
        said[asked[int(number) - 1]["gap"]] = text_of(text)
    return said


def _prompted(asked: list[Any]) -> dict[str, str]:
    """Each one in turn, on the terminal; an empty answer leaves it open."""
    import sys

    if not sys.stdin.isatty():
        listed = "; ".join(f"{n}. {one['gap']}" for n, one in enumerate(asked, 1))
        raise Invalid(f"undecided: {listed}", code="SAY", next="decide with --say N=TEXT, or on a terminal")
    said = {}
    for n, one in enumerate(asked, 1):
        typer.echo(f"{n}. {one['gap']}\n   {one['rationale']}")
        said[one["gap"]] = typer.prompt("   Your decision (empty leaves it open)", default="", show_default=False)
    return {gap: text for gap, text in said.items() if text.strip()}


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


@app.command("hold")
def hold(gate: Gate, as_json: AsJson = False) -> None:
    """Stop the countdown of an agent's question for good: it waits until you answer."""
    client = api()
    answer = client.call("gates.hold", gate=gate_of(client, gate)["id"])
    show(answer, as_json=as_json, text=_one)


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
