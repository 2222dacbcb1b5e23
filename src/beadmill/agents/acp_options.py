"""Model, effort and mode by what the session itself offers. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from beadmill.agents.acp_cli import Cli
from beadmill.agents.acp_stream import AcpStream, Broken
from beadmill.domain.values import Access, Json
from beadmill.processes.spec import AgentTask


class Chooser(Protocol):
    async def choose(self, conversation: str, option: str, value: str) -> Mapping[str, Json]: ...

    async def mode(self, conversation: str, mode: str) -> Mapping[str, Json]: ...


async def choose(
    talk: Chooser, stream: AcpStream, offered: Mapping[str, Json], *, cli: Cli, task: AgentTask
) -> list[str]:
    """What could not be chosen, as warnings. Raises Broken when it is the model: another one must not answer."""
    warnings: list[str] = []
    if task.seat.model and not cli.model_argv:
        offered = await _model(talk, stream, offered, task.seat.model)
    if task.seat.effort and not cli.effort_argv:
        found = _pick(offered, "thought_level", task.seat.effort)
        if found:
            offered = await talk.choose(stream.conversation, *found) or offered
        else:
            warnings.append(f"{cli.name} has no effort {task.seat.effort!r} here: its own default is used")
    mode = cli.modes.get("write" if task.access in (Access.WRITE, Access.ONLINE) else "read", "")
    if mode:
        await _mode(talk, stream.conversation, offered, mode)
    return warnings


async def _model(talk: Chooser, stream: AcpStream, offered: Mapping[str, Json], model: str) -> Mapping[str, Json]:
    found = _pick(offered, "model", model)
    if found is None:
        known = ", ".join(value for _, value in _values(offered, "model"))
        stream.give_up(f"the model {model!r} is not available; there are: {known or 'none to choose from'}")
        raise Broken
    return await talk.choose(stream.conversation, *found) or offered


async def _mode(talk: Chooser, conversation: str, offered: Mapping[str, Json], mode: str) -> None:
    """A mode that a version no longer has is passed by: permissions hold without it."""
    found = _pick(offered, "mode", mode)
    if found:
        await talk.choose(conversation, *found)
        return
    modes = (offered.get("modes") or {}).get("availableModes") or ()
    ids = [str(m["id"]) for m in modes if isinstance(m, dict) and m.get("id")]
    chosen = next((i for i in ids if i == mode or i.endswith(f"#{mode}")), None)
    if chosen:
        await talk.mode(conversation, chosen)


def _pick(offered: Mapping[str, Json], category: str, wanted: str) -> tuple[str, str] | None:
    """Option and value, by the whole value or by what stands behind its provider: ``openai/gpt-5``, ``gpt-5``."""
    values = list(_values(offered, category))
    exact = (pair for pair in values if pair[1] == wanted)
    behind = (pair for pair in values if pair[1].endswith((f"/{wanted}", f"#{wanted}")))
    return next(exact, None) or next(behind, None)


def _values(offered: Mapping[str, Json], category: str) -> Iterator[tuple[str, str]]:
    """Options may come in groups, which have options of their own."""
    for option in offered.get("configOptions") or ():
        if isinstance(option, dict) and option.get("category") == category:
            for row in option.get("options") or ():
                yield from ((str(option["id"]), str(r["value"])) for r in row.get("options") or (row,))
