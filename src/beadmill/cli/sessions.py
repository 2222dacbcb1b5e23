from __future__ import annotations

import json
from shlex import quote
from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, Most, api, fields, group, show, table

app = group("Agent sessions and command batches.")


@app.command("list")
def listing(
    run: str = "",
    live: Annotated[bool, typer.Option("--live", help="Only those that run now.")] = False,
    limit: Most = 50,
    as_json: AsJson = False,
) -> None:
    """Newest first."""
    query = {"run": run, "live": str(live).lower(), "limit": limit}
    show(api().call("sessions.listing", query=query), as_json=as_json, text=_list)


def _list(answer: Any) -> None:
    rows = [
        (s["kind"], s["seat"], s["template"], s["subject"], s["end"] or "running", s["tokens"], _cost(s), s["token"])
        for s in answer["items"]
    ]
    table(("KIND", "SEAT", "TASK", "ABOUT", "END", "TOKENS", "COST", "SESSION"), rows, empty="No session yet.")


@app.command("show")
def show_(token: str, as_json: AsJson = False) -> None:
    """What a session was given and how it ended."""
    show(api().call("sessions.show", token=token), as_json=as_json, text=_one)


def _one(session: Any) -> None:
    fields(
        [
            ("session", session["token"]),
            ("seat", session["seat"]),
            ("task", session["template"]),
            ("about", session["subject"]),
            ("end", session["end"] or "running"),
            ("said", (session["result"] or {}).get("message")),
            ("model", session["model"]),
            ("tokens", session["tokens"]),
            ("cost", _cost(session)),
            ("time", f"{session['seconds']:.1f} s"),
        ]
    )
    for part in session["ledger"]:
        left_out = "  left out: over the budget" if part["dropped"] else ""
        typer.echo(f"  given  {part['name']}  {part['tokens']} tokens  {part['sha256'][:12]}{left_out}")
        if part.get("note"):
            typer.echo(f"         {part['note']}")
    typer.echo(f"Its events: beadmill session log {quote(session['token'])}")


def _cost(session: Any) -> str:
    source = {"reported": "as its CLI says", "priced": "by list price", "override": "by your price"}
    if session["cost_usd"] is None:
        return "unpriced" if session["cost_source"] else ""
    return f"${session['cost_usd']:.4f} {source.get(session['cost_source'], '')}".rstrip()


@app.command("log")
def log(
    token: str,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the session ends.")] = False,
    as_json: AsJson = False,
) -> None:
    """Its events: as text, or as JSON lines with --json."""
    client = api()
    if not follow:
        for line in client.text("sessions.log", token=token).splitlines():
            _line(line, as_json=as_json)
        return
    for event in client.follow("sessions.log", query={}, token=token):
        for line in event.data.get("lines", ()):
            _line(line, as_json=as_json)


def _line(line: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(line)
        return
    event = json.loads(line)
    data = event.get("data", {})
    said = data.get("text") or data.get("message") or data.get("command") or data.get("name") or data.get("type") or ""
    typer.echo(f"{str(event.get('at', ''))[11:19]}  {event.get('kind', ''):<12}  {said}".rstrip())
