from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, api, fields, group, set_all, show
from beadmill.errors import Invalid, NotFound

app = group("Settings: of this installation, and of every run by project and ticket.")
Project = Annotated[str, typer.Option("--project", help="Of this project, by its short name.")]
Ticket = Annotated[str, typer.Option("--ticket", help="Of this ticket.")]
All = Annotated[bool, typer.Option("--all", help="Also what is as Beadmill comes.")]


@app.command("show")
def show_(*, project: Project = "", ticket: Ticket = "", everything: All = False, as_json: AsJson = False) -> None:
    """Every setting, its value, and where it comes from."""
    client = api()
    view = client.call("settings.show", query={"project": project, "ticket": ticket})
    house = None if project or ticket else client.call("status.config")
    said = view if house is None else {**house, **view}
    show(said, as_json=as_json, text=lambda answer: _print(answer, everything=everything))


def _print(view: Any, *, everything: bool) -> None:
    if view["problem"]:
        typer.echo(f"! {view['problem']}")
    if "values" in view:
        fields([(n, f"{_text(v)}  ({view['sources'][n]})") for n, v in view["values"].items() if n != "defaults"])
        typer.echo()
    shown = [one for one in view["settings"] if everything or one["pending"] or _own(one)]
    fields([(one["path"], _line(one, everything=everything)) for one in shown])
    hidden = len(view["settings"]) - len(shown)
    if hidden:
        typer.echo(f"{hidden} settings are as Beadmill comes: --all shows them, with what each does.")


def _own(one: Mapping[str, Any]) -> bool:
    """Set by somebody, or frozen by a run as something else than Beadmill comes."""
    frozen_as_it_comes = one["source"] == "run" and one["value"] == one["layers"]["default"]
    return bool(one["source"] != "default" and not frozen_as_it_comes)


def _line(one: Mapping[str, Any], *, everything: bool) -> str:
    parts = [f"{_text(one['value'])}  ({one['source']})"]
    if one["pending"]:
        parts.append(f"{one['pending']}; until then {_text(one['layers']['run'])}")
    if everything:
        parts += [one["says"], *([one["range"]] if one["range"] else []), one["read"]]
    return "; ".join(parts)


def _text(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return ", ".join(map(_seat, value)) or "none"
    if isinstance(value, dict) and set(value) == {"agent", "model", "effort"}:
        return _seat(value)
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _seat(seat: Mapping[str, Any]) -> str:
    return "/".join((seat["agent"], seat["model"], seat["effort"])).rstrip("/")


@app.command("get")
def get(path: str, *, project: Project = "", ticket: Ticket = "", as_json: AsJson = False) -> None:
    """One setting: its value alone, for scripts; --json tells all about it."""
    view = api().call("settings.show", query={"project": project, "ticket": ticket})
    one = next((one for one in view["settings"] if one["path"] == path), None)
    if one is None:
        raise NotFound(f"there is no setting {path}", code="SETTING", next="beadmill config show --all")
    show(one, as_json=as_json, text=lambda found: typer.echo(_text(found["value"])))


@app.command("set")
def set_(
    settings: Annotated[
        list[str], typer.Argument(help="key=value, for example council.quorum=3; key= inherits again.")
    ],
    *,
    project: Project = "",
    ticket: Ticket = "",
    as_json: AsJson = False,
) -> None:
    """Change settings: in config.toml, of a project, or of a ticket. A run that goes on reads some of them again."""
    if project and ticket:
        raise Invalid("name a project or a ticket, not both", code="WHOSE")
    answer = set_all(api(), settings, project=project, ticket=ticket)
    named = {pair.partition("=")[0] for pair in settings}
    only = {**answer, "settings": [one for one in answer["settings"] if one["path"] in named]}
    show(answer, as_json=as_json, text=lambda _answer: _print(only, everything=True))
