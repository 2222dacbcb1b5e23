"""One session of a visit: opened in the books within the budget, started or re-attached, and waited for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from beadmill import redact
from beadmill.domain.ended import Ended, Lost, Ran
from beadmill.domain.values import GateKind, GateRequest
from beadmill.engine.activation import Activation
from beadmill.engine.asking import ask, parked
from beadmill.processes.places import workspace_of
from beadmill.processes.spec import AgentTask, Batch, BoxSpec, EventKind, Policy
from beadmill.processes.wire import decode_end, encode
from beadmill.store.journal import budgets, sessions
from beadmill.store.journal.moves import Wait
from beadmill.store.journal.sessions import Opening

W = TypeVar("W", AgentTask, Batch)
MOST_TOOLS = 10_000  # calls of one scope that are looked at


async def attend(act: Activation, token: str, factory: Callable[[], W], *, name: str) -> Ended | Ran | Lost:
    """Its end when it was booked; otherwise it is (re-)attached and the activation parks on it."""
    row = act.memo.sessions.get(token)
    if row is not None and row["ended"] is not None:
        return decode_end(row["end"])
    act.entered.add(token)
    wait = Wait("session", token)
    there = act.sessions.find(token) if row is not None else None
    if there is not None and (there.live() or there.ended()):
        raise parked(wait)  # it runs, or waits to be booked
    if row is not None and there is None:
        await act.sessions.sweep_gone(token)  # never started, or its folder was deleted: two must not share a tree
    work = _scrubbed(factory())
    if row is None:
        if isinstance(work, AgentTask):
            await _within_budget(act)
        phase = act.pending
        busy = await act.write(
            lambda tx: sessions.open_session(tx, act.visit, act.owner, _opening(act, token, work), phase=phase)
        )
        act.written(phase)
        if busy is not None:
            raise parked(busy)
        act.passed(f"{name}:opened")
    await act.sessions.attach(token, work, _box(act, work))
    act.passed(f"{name}:attached")
    raise parked(wait)


def _box(act: Activation, work: AgentTask | Batch) -> BoxSpec:
    """No network is for commands: an agent without its model could not say a word. An allow-list is for both."""
    settings = act.settings
    network = "on" if isinstance(work, AgentTask) and settings.network == "off" else settings.network
    hosts = settings.allow_hosts if network == "allow-list" else ()
    policy = Policy(
        network=network, hosts=hosts, readable=tuple(Path(p) for p in settings.readable), image=settings.sandbox_image
    )
    return BoxSpec(settings.sandbox, workspace_of(Path(act.work.workspace), work.cwd), policy)


async def tools(act: Activation, scope: str) -> list[str]:
    """See engine.port.Visit."""
    found: list[str] = []
    begin = f"{act.visit}/{scope}/" if scope else f"{act.visit}/"
    for token in act.memo.sessions:
        name, _, rest = token.removeprefix(f"{act.visit}/").rpartition("#")
        there = act.sessions.find(token)
        if not token.startswith(begin) or rest.split("/")[0] != str(act.round_of(name)) or there is None:
            continue
        if there.ended() is None:
            continue
        async for _, event in there.events():
            if event.kind is EventKind.TOOL and len(found) < MOST_TOOLS:
                found.append(json.dumps(event.data, ensure_ascii=False, default=str))
    return found


def _scrubbed(work: W) -> W:
    """No secret of ours reaches an agent, a session folder or the books by way of a brief."""
    if isinstance(work, Batch):
        return work
    return replace(work, brief=replace(work.brief, text=redact.ours().work(work.brief.text)))


def _opening(act: Activation, token: str, work: AgentTask | Batch) -> Opening:
    if isinstance(work, Batch):
        return Opening(token, "batch", act.host, subject="; ".join(str(s) for s in work.specs)[:200])
    brief = work.brief
    return Opening(
        token,
        "agent",
        act.host,
        str(work.seat),
        work.seat.agent,
        work.seat.model,
        brief.template,
        brief.subject,
        [encode(p) for p in brief.ledger],
        brief.text,
        act.work.project,
        act.settings.agent_slots,
    )


async def _within_budget(act: Activation) -> None:
    """Parks on a budget gate when the run has spent what it may; the answer carries the new limits. All calls of the
    visit wait at one gate."""
    limits = act.settings.budget
    if limits.usd is None and limits.tokens is None and limits.minutes is None:
        return
    now = await act.store.read(lambda conn: budgets.spending(conn, act.ref.run))
    if now.spent.state == "over":
        await ask(act, f"budget-{now.times}", _budget_gate(now))


def _budget_gate(now: budgets.Spending) -> GateRequest:
    number = {"type": "number", "exclusiveMinimum": 0}
    return GateRequest(
        GateKind.BUDGET,
        "The budget is used up",
        ("raise",),
        form={
            "type": "object",
            "properties": {"usd": number, "tokens": number, "minutes": number},
            "additionalProperties": False,
        },
        detail={
            "limits": now.limits.model_dump(),
            "spent": {"usd": now.usd, "tokens": now.tokens, "minutes": round(now.minutes, 1)},
            "unpriced": now.unpriced,
        },
    )
