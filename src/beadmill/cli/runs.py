from __future__ import annotations

from typing import Annotated, Any

import typer

from beadmill.cli.common import AsJson, Most, api, blind, fields, group, money, parked, run_of, show, table, text_of
from beadmill.cli.told import told

app = group("Executions of SOPs. A run is named by its id, or by its ticket.")
Run = Annotated[str, typer.Argument(help="The run's id, or a ticket's key.")]


@app.command("list")
def listing(
    ticket: str = "",
    project: str = "",
    state: Annotated[str, typer.Option(help="active, completed, closed, canceled or superseded.")] = "",
    limit: Most = 50,
    as_json: AsJson = False,
) -> None:
    """Runs, newest first."""
    query = {"ticket": ticket, "project": project, "state": state, "limit": limit}
    show(api().call("runs.listing", query=query), as_json=as_json, text=_list)


def _list(answer: Any) -> None:
    rows = [(r["id"], r["sop"], r["state"], r["hold"], money(r["spend"]), r["created"][:19]) for r in answer["items"]]
    table(("RUN", "SOP", "STATE", "HOLD", "SPENT", "STARTED"), rows, empty="No run yet.")


@app.command("show")
def show_(run: Run, as_json: AsJson = False) -> None:
    """One run: nodes, visits, what waits."""
    client = api()
    show(client.call("runs.show", run=run_of(client, run)), as_json=as_json, text=_one)


def _one(run: Any) -> None:
    fields(
        [
            ("run", run["id"]),
            ("sop", run["sop"]),
            ("state", run["state"]),
            ("hold", run["hold"] if run["hold"] != "none" else ""),
            ("parent", run["parent"]),
            ("spent", money(run["spend"])),
            ("branch", run["work"].get("branch")),
        ]
    )
    rows = [
        (v["id"].partition("/")[2], v["state"], v["phase"], v["outcome"], v["note"] or v["comment"])
        for v in run["visits"]
    ]
    table(("VISIT", "STATE", "PHASE", "OUTCOME", "NOTE"), rows, empty="no visit yet")
    for line in (*blind(run), *parked(run)):
        typer.echo(line)
    if run["hold"] != "none":
        typer.echo(f"Held ({run['hold']}). Go on: beadmill run resume {run['id']}")
    for gate in run["gates"]:
        typer.echo(f"Waits for you: {gate['title']}\n  {gate['answer_with']}")


@app.command("errors")
def errors(run: Run, as_json: AsJson = False) -> None:
    """What stopped the run, one after the other, and how it went on."""
    client = api()
    show(client.call("occurrences.listing", run=run_of(client, run)), as_json=as_json, text=_errors)


def _errors(found: Any) -> None:
    if not found:
        typer.echo("Nothing has stopped this run.")
    for one in found:
        typer.echo(f"{one['number']}  {one['at'][:19].replace('T', ' ')}  {one['node']}  {one['code']}")
        pairs = [
            ("happened", one["message"]),
            ("kept", one["kept"]),
            ("phase", one["phase"]),
            ("resolved", _resolved(one)),
        ]
        pairs += [("note", one["note"]), ("gate", one["gate"])]
        fields([(f"   {name}", value) for name, value in pairs])
        for name, value in (one["details"] or {}).items():
            typer.echo(f"   {name}: {'; '.join(str(value).splitlines())[:500]}")


def _resolved(one: Any) -> str:
    if not one["resolution"]:
        return "not yet"
    to = f" → {one['resumed_to']}" if one["resumed_to"] else ""
    by = f" by {one['by']}, {one['resolved_at'][:19].replace('T', ' ')}" if one["by"] else ""
    return f"{one['resolution'].replace('_', ' ')}{to}{by}"


@app.command("diff")
def diff(run: Run, as_json: AsJson = False) -> None:
    """The whole change of a run, as one patch, once it is integrated."""
    client = api()
    show(client.call("changes.diff", run=run_of(client, run)), as_json=as_json, text=_patch)


def _patch(answer: Any) -> None:
    typer.echo(answer["diff"] or "There is no change yet.", nl=not answer["diff"])


@app.command("trail")
def trail(run: Run, as_json: AsJson = False) -> None:
    """What people and policy decided and changed, and why: of a run, or of all runs of a ticket."""
    query = {"run": run} if "-r" in run else {"ticket": run}
    show(api().call("trail.listing", query=query), as_json=as_json, text=_trail)


def _trail(answer: Any) -> None:
    for line in answer["lines"]:
        typer.echo(f"{line['at'][:19].replace('T', ' ')}  {line['by']}  {told(line)}")
        if line["reason"]:
            typer.echo(f"    {'; '.join(line['reason'].splitlines())}")
        for gap in line["acknowledged"]:
            typer.echo(f"    with: {gap}")
        for gap, text in line["details"].get("decisions", {}).items():
            typer.echo(f"    {gap} → {'; '.join(text.splitlines())}")
    if not answer["lines"]:
        typer.echo("Nobody decided or changed anything yet.")


@app.command("context")
def context(
    run: Run,
    parts: Annotated[bool, typer.Option("--parts", help="Every part of every session, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """What each step was given, in tokens, and what the provider billed for it."""
    client = api()
    answer = client.call("runs.context", run=run_of(client, run))
    show(answer, as_json=as_json, text=lambda found: _context(found, parts=parts))


def _context(found: Any, *, parts: bool) -> None:
    rows: list[tuple[str, ...]] = []
    for stage in found["stages"]:
        rows.append((f"{stage['node']} {stage['n']}", "", *_tokens(stage["given"])))
        for one in stage["sessions"]:
            rows.append((f"  {one['template']} {one['subject']}".rstrip(), one["seat"], *_tokens(one["given"])))
            rows += [(f"    {part['name']}", "", *_part(part)) for part in one["parts"] if parts]
    if rows:
        rows.append(("in all", "", *_tokens(found["given"])))
    columns = ("STEP", "SEAT", "GIVEN (ESTIMATE)", "LEFT OUT", "BILLED INPUT", "OF IT CACHED")
    table(columns, rows, empty="No session yet.")


def _tokens(given: Any) -> tuple[str, ...]:
    told = ("-" if given[name] is None else f"{given[name]:,}" for name in ("billed", "cached"))
    return (f"{given['estimated']:,}", f"{given['dropped']:,}" if given["dropped"] else "", *told)


def _part(part: Any) -> tuple[str, ...]:
    count = f"{part['tokens']:,}"
    return ("", count, "", "") if part["dropped"] else (count, "", "", "")


@app.command("council")
def council(
    run: Run,
    node: Annotated[str, typer.Argument(help="interview, prd or beads.")],
    visit: Annotated[int, typer.Option(help="Which visit of the step; 0 is the newest.")] = 0,
    as_json: AsJson = False,
) -> None:
    """The seats of a planning step: what each is doing, how its draft and vote ended, its time and cost."""
    client = api()
    answer = client.call("councils.show", run=run_of(client, run), node=node, query={"visit": visit})
    show(answer, as_json=as_json, text=_council)


def _council(answer: Any) -> None:
    rows = [
        (
            phase["name"],
            seat["seat"] + 1,
            seat["label"],
            seat["state"].replace("_", " "),
            money(seat["spend"]),
            _worked(seat),
        )
        for phase in answer["phases"]
        for seat in phase["seats"]
    ]
    table(("PHASE", "SEAT", "AGENT", "STATE", "SPENT", "WORKED"), rows, empty="The council has not begun.")
    for seat in [seat for phase in answer["phases"] for seat in phase["seats"] if seat["error"]]:
        typer.echo(f"Seat {seat['seat'] + 1}: {seat['error']}")
    if answer["votes"]:
        means = ", ".join(f"seat {int(s) + 1}: {mean:.1f}" for s, mean in answer["votes"]["means"].items())
        typer.echo(f"Means: {means}. Chosen: the draft of seat {answer['votes']['winner'] + 1}.")


def _worked(seat: Any) -> str:
    return f"{seat['spend']['agent_seconds']:.0f} s"


@app.command("watch")
def watch(
    run: Run,
    until_gate: Annotated[
        bool, typer.Option("--until-gate", help="End with exit code 5 when a person is needed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Live, as ticket watch."""
    from beadmill.cli.watch import watch as live

    client = api()
    key = client.call("runs.show", run=run_of(client, run))["ticket"]
    raise typer.Exit(live(client, key, as_json=as_json, until_gate=until_gate))


@app.command("pause")
def pause(
    run: Run,
    now: Annotated[bool, typer.Option("--now", help="Stop running agents at once; their work is kept.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let running turns end, then activate nothing."""
    client = api()
    answer = client.call("runs.pause", run=run_of(client, run), body={"now": now})
    show(answer, as_json=as_json, text=_one)


@app.command("resume")
def resume(run: Run, as_json: AsJson = False) -> None:
    """Go on after a pause."""
    client = api()
    show(client.call("runs.resume", run=run_of(client, run)), as_json=as_json, text=_one)


@app.command("retry")
def retry(
    run: Run,
    note: Annotated[
        str, typer.Option(help="A note for the next try, as the agent shall read it; - reads standard input.")
    ] = "",
    go_on: Annotated[bool, typer.Option("--continue", help="Resume the same agent conversation.")] = False,
    as_json: AsJson = False,
) -> None:
    """Try again what is blocked; only the scope that failed is forgotten. What waits for a provider asks again now."""
    client = api()
    body = {"note": text_of(note), "choice": "continue" if go_on else "retry"}
    show(client.call("runs.retry", run=run_of(client, run), body=body), as_json=as_json, text=_one)


@app.command("rerun")
def rerun(
    run: Run,
    node: Annotated[str, typer.Argument(help="The node to start again from.")],
    comment: str = "",
    as_json: AsJson = False,
) -> None:
    """Start again from a node; everything before it is kept."""
    client = api()
    body = {"node": node, "comment": comment}
    show(client.call("runs.rerun", run=run_of(client, run), body=body), as_json=as_json, text=_one)


@app.command("cancel")
def cancel(run: Run, reason: str = "", as_json: AsJson = False) -> None:
    """As ticket cancel."""
    client = api()
    show(client.call("runs.cancel", run=run_of(client, run), body={"reason": reason}), as_json=as_json, text=_one)
