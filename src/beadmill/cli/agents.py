from __future__ import annotations

from typing import Any

import typer

from beadmill.cli.common import AsJson, api, fields, group, show, table

app = group("Coding-agent CLIs on this machine.")


@app.command("list")
def listing(as_json: AsJson = False) -> None:
    """Every agent and what is found of it."""
    show(api().call("agents.listing"), as_json=as_json, text=_list)


def _list(agents: Any) -> None:
    rows = [(a["name"], a["state"], a["version"], _signed_in(a), a["note"] or a["path"]) for a in agents]
    table(("AGENT", "STATE", "VERSION", "SIGNED IN", "NOTE"), rows, empty="No agent is registered.")


def _signed_in(agent: Any) -> str:
    return {True: "yes", False: "no", None: ""}[agent["signed_in"]]


@app.command("install")
def install(name: str, as_json: AsJson = False) -> None:
    """Install a missing agent."""
    show(api().call("agents.install", name=name), as_json=as_json, text=_one)


@app.command("probe")
def probe(name: str, as_json: AsJson = False) -> None:
    """Look again and ask for its models; exit code 1 when it is not ready."""
    answer = api().call("agents.probe", name=name)
    show(answer, as_json=as_json, text=_one)
    if answer["state"] != "ready":
        raise typer.Exit(1)


def _one(agent: Any) -> None:
    fields(
        [
            ("agent", agent["name"]),
            ("state", agent["state"]),
            ("version", agent["version"]),
            ("path", agent["path"]),
            ("signed in", _signed_in(agent)),
            ("note", agent["note"]),
            ("models", ", ".join(agent.get("models", ()))),
        ]
    )
