"""Calls that wait for a person or a time. The first request and the first recorded time win."""

from __future__ import annotations

from datetime import datetime

from beadmill.domain.machine import Phase
from beadmill.domain.values import GateAnswer, GateRequest
from beadmill.engine.activation import Activation
from beadmill.errors import Parked, Superseded
from beadmill.store.db import Tx, stamp
from beadmill.store.journal import gates, moves
from beadmill.store.journal.moves import Wait
from beadmill.store.journal.visits import set_phase


def parked(*waits: Wait) -> Parked:
    return Parked(frozenset(waits))


async def ask(act: Activation, name: str, request: GateRequest) -> GateAnswer:
    gate = act.key(name)
    if (row := act.memo.decisions.get(gate)) is not None:
        return gates.to_answer(row)
    phase = act.pending
    answer = await act.write(lambda tx: _open(tx, act, gate, request, phase))
    act.written(phase)
    act.passed(name)
    if answer is None:
        raise parked(Wait("gate", gate))
    return answer


def _open(tx: Tx, act: Activation, gate: str, request: GateRequest, phase: Phase | None) -> GateAnswer | None:
    if not moves.owned(tx, act.visit, act.owner):
        raise Superseded(act.visit)
    set_phase(tx, act.visit, phase)
    gates.open_gate(tx, gate, act.visit, request)
    return gates.decision(tx.conn, gate)


async def sleep(act: Activation, name: str, until: datetime) -> None:
    """The first recorded ``until`` wins."""
    row = act.known(name)
    if row is None:
        row = await act.record(name, "sleep", stamp(until))
    if row.result > stamp(act.store.clock()):
        raise parked(Wait("time", name, row.result))
