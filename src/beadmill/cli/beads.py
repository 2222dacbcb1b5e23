from __future__ import annotations

from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, api, fields, group, run_of, show, table

app = group("The smallest units of work of a run.")
Run = Annotated[str, typer.Argument(help="The run's id, or a ticket's key.")]


@app.command("list")
def listing(run: Run, as_json: AsJson = False) -> None:
    """The plan with the state of every bead."""
    client = api()
    show(client.call("beads.listing", run=run_of(client, run)), as_json=as_json, text=listed)


def listed(beads: Any) -> None:
    rows = [
        (
            b["priority"],
            b["id"],
            "skipped" if b["skipped"] else b["state"],
            b["attempts"],
            ", ".join(b["blocked_by"]),
            b["title"],
        )
        for b in beads
    ]
    table(("#", "BEAD", "STATE", "TRIES", "AFTER", "TITLE"), rows, empty="There is no plan yet.")


@app.command("show")
def show_(
    run: Run,
    bead: str,
    diff: Annotated[bool, typer.Option("--diff", help="With the whole diff.")] = False,
    as_json: AsJson = False,
) -> None:
    """One bead: attempts, checks, evidence."""
    client = api()
    answer = client.call("beads.show", run=run_of(client, run), bead=bead)
    show(answer, as_json=as_json, text=lambda a: _one(a, diff=diff))


def _one(bead: Any, *, diff: bool) -> None:
    evidence = bead["evidence"] or {}
    red = evidence.get("red_on_base") or {}
    fields(
        [
            ("bead", f"{bead['id']}  {bead['title']}"),
            ("state", bead["state"]),
            ("after", ", ".join(bead["blocked_by"])),
            ("tries", bead["attempts"]),
            ("red on base", red.get("result")),
            ("commit", evidence.get("commit")),
        ]
    )
    rows = [(c["purpose"], c["exit"], f"{c['seconds']:.1f} s", c["command"]) for c in bead["checks"]]
    table(("CHECK", "EXIT", "TIME", "COMMAND"), rows, empty="No check has run yet.")
    for attempt in bead["tries"]:
        if attempt["note"]:
            typer.echo(f"try {attempt['n']}: {attempt['note']}")
    if diff:
        typer.echo(bead["diff"])
