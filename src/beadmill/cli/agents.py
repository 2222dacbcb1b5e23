from __future__ import annotations

from typing import Annotated, Any

import typer

from beadmill.cli.client import Client
from beadmill.cli.common import AsJson, api, fields, group, say, show, table
from beadmill.domain.money import said

app = group("Coding-agent CLIs on this machine.")
Quiet = Annotated[bool, typer.Option("--detach", help="Only start it; the daemon goes on.")]


@app.command("list")
def listing(as_json: AsJson = False) -> None:
    """Every agent and what is found of it."""
    show(api().call("agents.listing"), as_json=as_json, text=_list)


def _list(agents: Any) -> None:
    rows = [(a["name"], _state(a), a["version"], _signed_in(a), _abilities(a["can"]), _note(a)) for a in agents]
    table(("AGENT", "STATE", "VERSION", "SIGNED IN", "CAN", "NOTE"), rows, empty="No agent is registered.")


def _state(agent: Any) -> str:
    running = agent["install"] and agent["install"]["state"] == "running"
    return "installing" if running else str(agent["state"])


def _signed_in(agent: Any) -> str:
    if agent["state"] != "ready":
        return ""
    return {True: "yes", False: "no", None: "unknown"}[agent["signed_in"]]


def _abilities(can: Any) -> str:
    return " ".join(name for name, able in can.items() if able)


def _note(agent: Any) -> str:
    if agent["state"] == "ready" and agent["signed_in"] is False:
        return f"sign in: {agent['sign_in']}"
    return ". ".join(filter(None, (agent["note"], agent["next"]))) or str(agent["path"])


# --- install ------------------------------------------------------------------------------------------------------
@app.command("install")
def install(name: str, detach: Quiet = False, as_json: AsJson = False) -> None:
    """Install or update an agent in the data home: no rights are needed. Ctrl-C leaves it to the daemon."""
    client = api()
    job = client.call("agents.install", name=name)
    if not detach:
        job = _follow(client, job, quiet=as_json)
    show(job, as_json=as_json, text=_ended)
    if job["state"] in ("failed", "canceled"):
        raise typer.Exit(1)


def _follow(client: Client, job: Any, *, quiet: bool) -> Any:
    """Says every line once, as it comes; returns how the install ended."""
    shown = _say_lines(job, 0, quiet)
    if job["state"] == "running":
        for event in client.follow("events.since", query={"topics": "agents", "since": job["seq"]}):
            told = event.data.get("data", {})
            if (told.get("agent"), told.get("started")) != (job["agent"], job["started"]):
                continue
            shown = _say_lines(told, shown, quiet)
            if told["state"] != "running":
                break
    return client.call("agents.progress", name=job["agent"])


def _say_lines(job: Any, shown: int, quiet: bool) -> int:
    for number, line in enumerate(job["lines"], job["first"]):
        if number >= shown and not quiet:
            say(line)
    return max(shown, int(job["first"]) + len(job["lines"]))


def _ended(job: Any) -> None:
    match job["state"]:
        case "running":
            typer.echo(f"{job['agent']} is being installed: beadmill agent install {job['agent']} shows how it goes")
        case "done":
            typer.echo(f"{job['agent']} {job['version']} is installed: beadmill agent probe {job['agent']}")
        case "canceled":
            typer.echo("canceled; what was installed before is still there")
        case _:
            _failed(job["error"] or {})


def _failed(error: Any) -> None:
    fields([(name, error.get(key)) for name, key in (("failed", "message"), ("kept", "kept"), ("next", "next"))])


@app.command("cancel")
def cancel(name: str, as_json: AsJson = False) -> None:
    """End an install that runs; what was installed before stays."""
    show(api().call("agents.cancel", name=name), as_json=as_json, text=_ended)


# --- probe --------------------------------------------------------------------------------------------------------
@app.command("probe")
def probe(
    name: str,
    turn: Annotated[bool, typer.Option("--turn", help="Take one tiny real turn; it costs a little.")] = False,
    model: Annotated[str, typer.Option(help="For --turn: the model; empty = the CLI's own.")] = "",
    effort: Annotated[str, typer.Option(help="For --turn: the effort.")] = "",
    as_json: AsJson = False,
) -> None:
    """Look again and ask for its models; exit code 1 when it is not ready."""
    client = api()
    if turn:
        took = client.call("agents.turn", name=name, body={"model": model, "effort": effort})
        show(took, as_json=as_json, text=_turn)
        raise typer.Exit(0 if took["ok"] else 1)
    answer = client.call("agents.probe", name=name)
    show(answer, as_json=as_json, text=_one)
    if answer["state"] != "ready":
        raise typer.Exit(1)


def _one(agent: Any) -> None:
    fields(
        [
            ("agent", agent["name"]),
            ("state", _state(agent)),
            ("version", agent["version"]),
            ("path", agent["path"]),
            ("signed in", _signed_in(agent)),
            ("sign in", agent["sign_in"] if agent["signed_in"] is not True else ""),
            ("can", _abilities(agent["can"])),
            ("note", agent["note"]),
            ("next", agent["next"]),
        ]
    )
    rows = [(model["id"], model["name"], " ".join(model["efforts"])) for model in agent["models"]]
    if agent["state"] == "ready":
        table(("MODEL", "NAME", "EFFORTS"), rows, empty="It names no models.")


def _turn(took: Any) -> None:
    fields(
        [
            ("agent", took["agent"]),
            ("end", took["end"] if took["ok"] else f"{took['end']}: {took['why']}"),
            ("said", took["text"]),
            ("failed", took["message"]),
            ("next", took["next"]),
            ("time", f"{took['seconds']:.1f} s"),
            ("model", took["model"]),
            ("tokens", f"{took['input']} in, {took['cached']} cached, {took['output']} out"),
            ("cost", said(took["cost_usd"], int(took["cost_source"] == "unpriced"))),
        ]
    )
