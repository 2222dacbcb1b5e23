from __future__ import annotations

from typing import Annotated, Any

import typer

from beadmill.cli.client import Client
from beadmill.cli.common import (
    AsJson,
    Most,
    api,
    blind,
    fields,
    group,
    money,
    overrides,
    parked,
    say,
    set_all,
    settings_of,
    show,
    table,
    text_of,
)
from beadmill.errors import BeadmillError

app = group("Work items: from a draft to a merged change.")
Set = Annotated[list[str] | None, typer.Option("--set", help="A setting, for example build.attempts=3. Repeatable.")]
Text = Annotated[str | None, typer.Option(help="Markdown; - reads standard input, @file a file.")]
UntilGate = Annotated[bool, typer.Option("--until-gate", help="End with exit code 5 as soon as a person is needed.")]


@app.command("new")
def new(
    *,
    project: Annotated[str, typer.Argument(help="Short name of the project.")],
    title: str,
    description: Text = None,
    acceptance: Text = None,
    priority: Annotated[int, typer.Option(min=1, max=5, help="1 first, 5 last.")] = 3,
    sop: str = "deliver",
    set_: Set = None,
    start_now: Annotated[bool, typer.Option("--start", help="Start it at once.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a draft."""
    client = api()
    body = {"project": project, "title": title, "priority": priority, "sop": sop, "overrides": overrides(set_ or [])}
    texts = {"description": text_of(description or ""), "acceptance": text_of(acceptance or "")}
    answer = client.call("tickets.create", body={**body, **texts})
    if start_now:
        answer = _started(client, answer["key"])
    show(answer, as_json=as_json, text=_one)


def _started(client: Client, key: str) -> Any:
    try:
        return client.call("tickets.start", key=key)
    except BeadmillError:
        say(f"{key} was created; it is not started.")
        raise


@app.command("list")
def listing(
    *,
    project: str = "",
    column: Annotated[str, typer.Option(help="todo, needs_input, in_progress or done.")] = "",
    search: str = "",
    sort: Annotated[str, typer.Option(help="updated, created or priority.")] = "updated",
    cursor: Annotated[str, typer.Option(help="Goes on behind an earlier page.")] = "",
    limit: Most = 50,
    as_json: AsJson = False,
) -> None:
    """Tickets, newest change first."""
    query = {"project": project, "column": column, "search": search, "sort": sort, "cursor": cursor, "limit": limit}
    show(api().call("tickets.listing", query=query), as_json=as_json, text=_list)


def _list(answer: Any) -> None:
    rows = [(t["key"], _status(t), _beads(t["beads"]), money(t["spend"]), t["title"]) for t in answer["items"]]
    empty = "No ticket here. Create one: beadmill ticket new <project> <title>"
    table(("KEY", "STATUS", "BEADS", "SPENT", "TITLE"), rows, empty=empty)
    if answer["next"]:
        typer.echo(f"More: --cursor {answer['next']}")


def _status(ticket: Any) -> str:
    words = ticket["status"].replace("_", " ")
    return f"{words} (held: {ticket['hold']})" if ticket["hold"] != "none" else words


def _beads(beads: Any) -> str:
    return f"{beads['done']}/{beads['total']}" if beads["total"] else ""


@app.command("show")
def show_(key: str, as_json: AsJson = False) -> None:
    """One ticket with its run, and what waits for you."""
    show(api().call("tickets.show", key=key), as_json=as_json, text=_one)


def _one(ticket: Any) -> None:
    fields(
        [
            ("ticket", f"{ticket['key']}  {ticket['title']}"),
            ("status", _status(ticket)),
            ("priority", ticket["priority"]),
            ("sop", ticket["sop"]),
            ("run", ticket["run"]),
            ("beads", _beads(ticket["beads"])),
            ("spent", money(ticket["spend"])),
            ("settings", settings_of(ticket["overrides"])),
        ]
    )
    if ticket["description"]:
        typer.echo(f"\n{ticket['description']}")
    if ticket["current"]:
        _run(ticket["current"])
    elif ticket["state"] == "draft":
        typer.echo(f"\nStart it: beadmill ticket start {ticket['key']}")


def _run(run: Any) -> None:
    typer.echo()
    asking = {gate["node"] for gate in run["gates"]}
    rows = [
        (
            n["title"],
            "asks you" if n["id"] in asking else n["state"],
            n["visits"] or "",
            n["outcome"],
            money(n["spend"]),
        )
        for n in run["nodes"]
    ]
    table(("NODE", "STATE", "VISITS", "OUTCOME", "SPENT"), rows, empty="no nodes")
    if run["change"]:
        typer.echo(f"\nChange {run['change']['number']}: {run['change']['state']} {run['change']['url']}".rstrip())
    for line in (*blind(run), *parked(run)):
        typer.echo(f"\n{line}")
    if run["hold"] != "none":
        typer.echo(f"\nHeld ({run['hold']}). Go on: beadmill run resume {run['id']}")
    for gate in run["gates"]:
        typer.echo(f"\nWaits for you: {gate['title']}\n  {gate['answer_with']}")


@app.command("edit")
def edit(
    *,
    key: str,
    title: Annotated[str | None, typer.Option()] = None,
    description: Text = None,
    acceptance: Text = None,
    priority: Annotated[int | None, typer.Option(min=1, max=5)] = None,
    sop: Annotated[str | None, typer.Option()] = None,
    set_: Set = None,
    as_json: AsJson = False,
) -> None:
    """Change a draft. --set changes the named settings, others stay; a ticket that runs takes what it reads again."""
    body: dict[str, Any] = {"title": title, "priority": priority, "sop": sop}
    body |= {"description": None if description is None else text_of(description)}
    body |= {"acceptance": None if acceptance is None else text_of(acceptance)}
    given = {name: value for name, value in body.items() if value is not None}
    client = api()
    if set_:
        set_all(client, set_, ticket=key)
    said = client.call("tickets.edit", key=key, body=given) if given else client.call("tickets.show", key=key)
    show(said, as_json=as_json, text=_one)


@app.command("start")
def start(
    key: str,
    follow: Annotated[bool, typer.Option("--watch", help="Watch it afterwards.")] = False,
    as_json: AsJson = False,
) -> None:
    """Freeze the settings and let it run."""
    client = api()
    answer = client.call("tickets.start", key=key)
    if follow:
        from beadmill.cli.watch import watch as live

        raise typer.Exit(live(client, key, as_json=as_json, until_gate=False))
    show(answer, as_json=as_json, text=_one)


@app.command("cancel")
def cancel(
    key: str,
    reason: str = "",
    delete: Annotated[
        list[str] | None, typer.Option(help="Do not keep: content (worktrees), log, or ticket. Repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Stop everything of a ticket and say canceled once that is proven. What was made is kept, unless told otherwise."""
    answer = api().call("tickets.cancel", key=key, body={"reason": reason, "delete": delete or []})
    show(answer, as_json=as_json, text=_one)


@app.command("watch")
def watch(key: str, until_gate: UntilGate = False, as_json: AsJson = False) -> None:
    """Live: nodes, beads, tokens, cost, and the question that waits. Ctrl-C detaches, the ticket goes on."""
    from beadmill.cli.watch import watch as live

    raise typer.Exit(live(api(), key, as_json=as_json, until_gate=until_gate))
