from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, api, fields, group, money, overrides, set_all, settings_of, show, table

app = group("Repositories that Beadmill works on.")
Set = Annotated[list[str] | None, typer.Option("--set", help="A setting, for example build.attempts=3. Repeatable.")]


@app.command("add")
def add(
    *,
    path: Annotated[Path, typer.Argument(help="A checkout of the repository.")] = Path(),
    name: Annotated[str, typer.Option(help="Shown name; default: the folder's.")] = "",
    short: Annotated[str, typer.Option(help="Prefix of ticket keys, for example API.")] = "",
    base: Annotated[str, typer.Option(help="Base branch; default: the remote's.")] = "",
    forge: Annotated[
        str, typer.Option(help="local, github, gitlab, gitea or gogs; default: what the remote's host is known for.")
    ] = "",
    forge_url: Annotated[
        str,
        typer.Option(
            help="Web address of the service when the remote does not say it, for example https://git.example.org."
        ),
    ] = "",
    set_: Set = None,
    as_json: AsJson = False,
) -> None:
    """Attach a repository."""
    body = {"path": str(path.absolute()), "name": name, "short": short, "base": base}
    more = {"forge": forge, "forge_url": forge_url, "overrides": overrides(set_ or [])}
    answer = api().call("projects.add", body={**body, **more})
    show(answer, as_json=as_json, text=_one)


@app.command("list")
def listing(as_json: AsJson = False) -> None:
    """Every project."""
    answer = api().call("projects.listing", query={"limit": 200})
    show(answer, as_json=as_json, text=_list)


def _list(answer: Any) -> None:
    rows = [
        (p["short"], p["name"], p["tickets"], (p["repository"] or {}).get("path", "removed")) for p in answer["items"]
    ]
    table(
        ("SHORT", "NAME", "TICKETS", "REPOSITORY"),
        rows,
        empty="No project yet. Attach one: beadmill project add <path>",
    )


@app.command("show")
def show_(short: str, as_json: AsJson = False) -> None:
    """One project, with what its repository lacks."""
    show(api().call("projects.show", short=short), as_json=as_json, text=_one)


def _one(answer: Any) -> None:
    repository = answer["repository"] or {}
    fields(
        [
            ("project", f"{answer['short']} ({answer['name']})"),
            ("repository", repository.get("path", "removed")),
            ("base", repository.get("base")),
            ("forge", " ".join((repository.get("forge", ""), repository.get("forge_url", ""))).strip()),
            ("tickets", answer["tickets"]),
            ("settings", settings_of(answer["overrides"])),
        ]
    )
    for problem in repository.get("problems", ()):
        typer.echo(f"! {problem}")


@app.command("council")
def council(short: str, as_json: AsJson = False) -> None:
    """What each seat achieved: drafts, votes, wins, ideas taken over, what was merged, and at what cost."""
    show(api().call("councils.record", short=short), as_json=as_json, text=_record)


def _record(answer: Any) -> None:
    columns = ("SEAT", "DRAFTS", "FAILED", "MEAN", "WON", "ADOPTED", "BROUGHT", "APPROVED", "MERGED", "SPENT", "TIME")
    table(columns, [_achieved(seat) for seat in answer["seats"]], empty="No council has sat yet.")
    for name, text in answer["definitions"].items() if answer["seats"] else ():
        typer.echo(f"{name:<9} {text}")


def _achieved(seat: Any) -> tuple[Any, ...]:
    drafted = seat["drafts"].get("completed", 0)
    mean = "-" if seat["mean"] is None else f"{seat['mean']:.1f}"
    won = f"{sum(seat['wins'].values())} of {sum(seat['stood'].values())}"
    items = (seat["adopted"], seat["brought"], seat["approved"], seat["merged"])
    spent = (money(seat["spend"]), f"{seat['spend']['agent_seconds']:.0f} s")
    return (seat["label"], drafted, sum(seat["drafts"].values()) - drafted, mean, won, *items, *spent)


@app.command("set")
def set_(
    short: str,
    settings: Annotated[
        list[str] | None, typer.Argument(help="key=value, for example build.attempts=3; key= inherits again.")
    ] = None,
    *,
    name: Annotated[str | None, typer.Option()] = None,
    base: Annotated[str | None, typer.Option()] = None,
    forge: Annotated[str | None, typer.Option(help="local, github, gitlab, gitea or gogs.")] = None,
    forge_url: Annotated[str | None, typer.Option(help="Web address of the service; empty: the remote's own.")] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Vouch for the repository's own git settings as they are now.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Change a project's name, base branch, forge or settings. Named settings replace theirs, others stay."""
    client = api()
    if settings:
        set_all(client, settings, project=short)
    body = {"name": name, "base": base, "forge": forge, "forge_url": forge_url, "trust": trust}
    show(client.call("projects.change", short=short, body=body), as_json=as_json, text=_one)


@app.command("remove")
def remove(short: str, as_json: AsJson = False) -> None:
    """Let go of a repository. It is not touched; tickets that ran stay readable."""
    answer = api().call("projects.remove", short=short)
    show(answer, as_json=as_json, text=lambda a: typer.echo(f"{a['message']}; {a['kept']}"))
