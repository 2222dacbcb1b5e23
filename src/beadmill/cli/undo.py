"""States that Beadmill kept before something destructive."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, api, fields, group, show, table
from beadmill.domain.size import said

app = group("States that were kept before a reset, a squash or a removal: look at them, bring them back.")
Number = Annotated[int, typer.Argument(help="The state's number, from `undo list`.")]


@app.command("list")
def listing(key: str, as_json: AsJson = False) -> None:
    """The kept states of a ticket and its lanes, newest first."""
    show(api().call("undo.listing", key=key), as_json=as_json, text=_list)


def _list(answer: Any) -> None:
    rows = [(s["n"], _when(s), s["place"], s["files"], said(s["size"]), s["why"]) for s in answer]
    empty = "No state was kept: nothing was reset or removed yet."
    table(("N", "KEPT", "OF", "FILES", "SIZE", "BEFORE"), rows, empty=empty)


def _when(state: Any) -> str:
    return state["when"][:16].replace("T", " ") if state["when"] else ""


@app.command("show")
def show_(key: str, n: Number, as_json: AsJson = False) -> None:
    """One kept state, as a patch against the commit it stood on."""
    show(api().call("undo.show", key=key, n=n), as_json=as_json, text=_one)


def _one(state: Any) -> None:
    fields(
        [
            ("state", state["ref"]),
            ("kept", _when(state)),
            ("of", state["place"]),
            ("before", state["why"]),
            ("on", state["head"]),
            ("not kept", ", ".join(state["left_out"])),
        ]
    )
    typer.echo(f"\n{state['diff'] or 'No file differs from that commit.'}")


@app.command("restore")
def restore(
    key: str,
    n: Number,
    branch: Annotated[str, typer.Option(help="As a new branch of this name; nothing else changes.")] = "",
    as_json: AsJson = False,
) -> None:
    """Bring a state back into the ticket's worktree, when nothing works there. What is there now is kept first."""
    answer = api().call("undo.restore", key=key, n=n, body={"branch": branch})
    show(answer, as_json=as_json, text=_restored)


def _restored(done: Any) -> None:
    if done["branch"]:
        typer.echo(f"State {done['n']} is the branch {done['branch']} ({done['commit'][:12]}).")
        return
    typer.echo(f"State {done['n']} is in {done['tree']}.\nWhat was there is kept: {done['kept']}")
