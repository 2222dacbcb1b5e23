"""Freeing disk space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, api, show, table
from beadmill.domain.size import said
from beadmill.errors import NotFound

Logs = Annotated[int | None, typer.Option(min=0, help="Also logs of runs that ended so many days ago.")]
Undo = Annotated[int | None, typer.Option(min=0, help="Also undo refs of tickets merged so many days ago.")]
Backups = Annotated[int | None, typer.Option(min=1, help="Also copies of the database beyond so many.")]
Item = Annotated[list[str] | None, typer.Option("--item", help="Only this id; repeatable. Takes what asks, too.")]
WORDS: Mapping[str, str] = {"ready": "can go", "ask": "asks", "keep": "stays"}


def clean(
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Remove it; each thing is looked at again before.")] = False,
    item: Item = None,
    logs_days: Logs = None,
    undo_days: Undo = None,
    backups: Backups = None,
    as_json: AsJson = False,
) -> None:
    """See what could be removed, how much it frees and why it is safe; with --apply, remove it."""
    client = api()
    ages = {"logs_days": logs_days, "undo_days": undo_days, "backups": backups}
    view = client.call("clean.preview", query={k: v for k, v in ages.items() if v is not None})
    if not apply:
        show(_only(view, item), as_json=as_json, text=_preview)
        return
    chosen = _only(view, item)["items"] if item else [i for i in view["items"] if i["verdict"] == "ready"]
    body = {"items": {i["id"]: i["mark"] for i in chosen}, "lose": bool(item), **ages}
    show(client.call("clean.apply", body=body), as_json=as_json, text=_report)


def _only(view: Any, wanted: Sequence[str] | None) -> Any:
    """Raises NotFound for an id that the preview does not have."""
    if not wanted:
        return view
    unknown = sorted(set(wanted) - {i["id"] for i in view["items"]})
    if unknown:
        raise NotFound(
            f"there is nothing called {unknown[0]} to remove",
            code="CLEAN_ITEM",
            kept="everything",
            next="beadmill clean",
        )
    return {**view, "items": [i for i in view["items"] if i["id"] in wanted]}


def _preview(view: Any) -> None:
    rows = [(i["id"], WORDS[i["verdict"]], said(i["size"]), _why(i)) for i in view["items"]]
    table(("ITEM", "", "SIZE", "WHY"), rows, empty="Nothing is left over.")
    if view["free"]:
        typer.echo(f"\n{said(view['free'])} can go without losing anything: beadmill clean --apply")
    if view["asks"]:
        typer.echo(f"{said(view['asks'])} hold what is kept nowhere else: beadmill clean --apply --item <ITEM>")


def _why(item: Any) -> str:
    return f"{item['why']}: {', '.join(item['loses'][:3])}" if item["loses"] else item["why"]


def _report(done: Any) -> None:
    for line in done["lines"]:
        freed = f"removed, {said(line['freed'])}" if line["removed"] else "kept"
        typer.echo(f"{line['id']}: {freed}; {line['said']}")
    typer.echo(f"{said(done['freed'])} freed." if done["lines"] else "Nothing is left over.")
