"""Sessions are folders: started once, re-attached, read after the end, proven gone."""

from __future__ import annotations

from conftest import World

from beadmill.domain.ended import CommandResult, Ran, Replied
from beadmill.processes.spec import EventKind


async def test_an_agent_edits_the_tree_and_its_reply_is_the_end(world: World) -> None:
    world.play({"write": {"path": "a.txt", "content": "new\n"}}, {"shell": "cat a.txt"}, {"reply": "all done"})
    end = await world.run("run/code.1/turn-1", world.task())
    assert isinstance(end, Replied)
    assert end.text == "all done"
    assert (world.tree / "a.txt").read_text() == "new\n"


async def test_events_come_in_order_and_can_be_read_again_from_any_offset(world: World) -> None:
    world.play({"say": "hello"}, {"shell": "true"}, {"reply": "done"})
    session = await world.start("t", world.task())
    seen = [(offset, event.kind) async for offset, event in session.events()]
    kinds = [kind for _, kind in seen]
    assert kinds == [
        EventKind.STARTED, EventKind.TEXT, EventKind.TOOL, EventKind.TOOL_DONE, EventKind.TEXT, EventKind.USAGE,
        EventKind.ENDED,
    ]  # fmt: skip
    assert [event.kind async for _, event in session.events(after=seen[3][0])] == kinds[4:]


async def test_a_batch_runs_its_commands_and_stops_at_the_first_failure(world: World) -> None:
    ran = await world.run("b", world.shell("echo one; echo two >&2", "exit 3", "echo never"))
    assert isinstance(ran, Ran)
    assert [(r.exit, r.output) for r in ran.results] == [(0, "one\ntwo\n"), (3, "")]
    assert not ran.ok


async def test_a_command_that_cannot_start_is_told_from_one_that_failed(world: World) -> None:
    ran = await world.run("b", world.shell("exit 127"))
    assert ran.results == (CommandResult("exit 127", 127, ran.results[0].seconds, ""),)
