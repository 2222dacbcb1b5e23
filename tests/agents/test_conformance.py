"""What every agent keeps of the contract: the same tests over the scripted agent and the real Codex."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from beadmill.agents import registry
from beadmill.domain.ended import Ended, Failed, Lapsed, Limited, Replied, Stopped, Why
from beadmill.domain.values import Access, Json, Usage
from beadmill.processes.spec import AgentEvent, EventKind
from tests.processes.session_world import World, until

STUBBORN = "(trap '' TERM; setsid sh -c \"trap '' TERM; touch up; sleep 300; sleep 300\" & sleep 300; sleep 300)"


async def turn(bench: World, token: str = "t", **more: Any) -> tuple[Ended, list[AgentEvent]]:
    session = await bench.start(token, bench.task(**more))
    events = [event async for _, event in session.events()]
    end = session.ended()
    assert isinstance(end, Ended)
    return end, events


async def test_a_turn_tells_its_events_in_order_and_ends_with_its_last_words_and_its_usage(bench: World) -> None:
    bench.play({"say": "I look first"}, {"shell": "echo hi"}, {"reply": "all done"})
    end, events = await turn(bench)
    assert isinstance(end, Replied)
    assert (end.text, end.session.token, end.session.conversation != "") == ("all done", "t", True)
    shown = [e for e in events if e.kind is not EventKind.WARNING]
    assert [e.kind for e in shown] == [
        EventKind.STARTED, EventKind.TEXT, EventKind.TOOL, EventKind.TOOL_DONE, EventKind.TEXT, EventKind.USAGE,
        EventKind.ENDED,
    ]  # fmt: skip
    done, usage, last = (shown[n].data for n in (3, 5, 6))
    assert (done["name"], done["ok"], done["output"], done["exit"]) == ("shell", True, "hi\n", 0)
    assert end.usage == Usage(**usage)
    assert (end.usage.input > 0, end.usage.output > 0, end.worked > timedelta()) == (True, True, True)
    assert last == {"type": "Replied"}


async def test_an_agent_that_may_write_edits_files(bench: World) -> None:
    bench.play(
        {"write": {"path": "src/new file.txt", "content": "one\n"}},
        {"append": {"path": "src/new file.txt", "content": "it's two, no newline"}},
        {"delete": "old.txt"},
        {"reply": "done"},
    )
    (bench.tree / "old.txt").touch()
    await turn(bench)
    files = {str(p.relative_to(bench.tree)): p.read_text() for p in bench.tree.rglob("*") if p.is_file()}
    assert files == {"src/new file.txt": "one\nit's two, no newline"}


@pytest.mark.parametrize("access", [Access.READ, Access.NONE])
async def test_an_agent_that_may_not_write_edits_nothing(bench: World, access: Access) -> None:
    bench.play({"write": {"path": str(bench.tree / "new.txt"), "content": "x\n"}}, {"reply": "done"})
    end, _ = await turn(bench, access=access)
    assert isinstance(end, Replied)
    assert list(bench.tree.iterdir()) == []


async def test_a_long_brief_arrives_whole(bench: World) -> None:
    bench.play_all([{"match": {"text": r"the last line\Z"}, "steps": [{"reply": "all read"}]}])
    end, _ = await turn(bench, text="words and more words\n" * 20_000 + "the last line")
    assert isinstance(end, Replied)


async def test_a_resumed_conversation_remembers(bench: World) -> None:
    bench.play_all(
        [
            {"match": {"memory": "the colour is blue", "text": "which colour"}, "steps": [{"reply": "blue"}]},
            {"match": {"text": "the colour is blue"}, "steps": [{"reply": "noted"}]},
        ]
    )
    first, _ = await turn(bench, "t1", text="the colour is blue")
    second, _ = await turn(bench, "t2", text="which colour?", resume=first.session)
    assert isinstance(second, Replied)
    assert (second.text, second.session.conversation) == ("blue", first.session.conversation)


async def test_a_resumed_turn_books_only_itself(bench: World) -> None:
    bench.play({"reply": "done"})
    first, _ = await turn(bench, "t1", text="many words " * 2_000)
    ends = [first]
    for n in (2, 3):
        end, _ = await turn(bench, f"t{n}", resume=first.session)
        ends.append(end)
    assert isinstance(ends[2], Replied)
    assert ends[2].usage.output <= ends[0].usage.output
    assert ends[2].usage.input < ends[0].usage.input


async def test_stop_ends_the_agent_and_its_stubborn_descendants(bench: World) -> None:
    bench.play({"shell": STUBBORN}, {"reply": "never"})
    session = await bench.start("t", bench.task())
    await until((bench.tree / "up").exists, seconds=60)
    await session.stop("canceled")
    end = session.ended()
    assert isinstance(end, Stopped)
    assert end.session.conversation != ""
    assert bench.running("t") == set()


async def test_a_spent_budget_lapses_and_leaves_nothing(bench: World) -> None:
    bench.play({"shell": "sleep 300; sleep 300"}, {"reply": "never"})
    end, _ = await turn(bench, budget=timedelta(seconds=5))
    assert isinstance(end, Lapsed)
    assert (end.idle, end.session.conversation != "") == (False, True)
    await until(lambda: bench.running("t") == set())


async def test_silence_lapses_as_idle(bench: World) -> None:
    bench.play({"hang": True})
    end, _ = await turn(bench, idle=timedelta(seconds=1.5))
    assert isinstance(end, Lapsed)
    assert end.idle


async def test_a_cap_on_steps_ends_the_turn_and_the_conversation_can_go_on(bench: World) -> None:
    bench.play({"shell": "touch a"}, {"shell": "touch b"}, {"shell": "touch c; sleep 300; sleep 300"}, {"reply": "no"})
    end, _ = await turn(bench, max_steps=2)
    assert isinstance(end, Failed)
    assert (end.why, end.continuable, end.session.conversation != "") == (Why.STEPS, True, True)
    assert {"a", "b"} <= {p.name for p in bench.tree.iterdir()} <= {"a", "b", "c"}
    await until(lambda: bench.running("t") == set())


async def test_a_missing_executable_is_a_failure_that_says_what_is_missing(bench: World) -> None:
    missing: Mapping[str, tuple[Mapping[str, Json], str]] = {
        "scripted": ({}, "the scripted agent has no scenario file"),
        "claude_code": ({"path": "/nowhere/claude"}, "claude is not installed: '/nowhere/claude' was not found"),
        "codex": ({"path": "/nowhere/codex"}, "codex is not installed: '/nowhere/codex' was not found"),
        "opencode": ({"path": "/nowhere/opencode"}, "opencode is not installed: '/nowhere/opencode' was not found"),
        "copilot": ({"path": "/nowhere/x"}, "copilot is not installed: '/nowhere/x' was not found"),
        "opencode_acp": ({"path": "/nowhere/x"}, "opencode_acp is not installed: '/nowhere/x' was not found"),
    }
    options, says = missing[bench.agent]
    bench.adapters[bench.agent] = registry.adapter(bench.agent, options)
    bench.sessions = bench.open()
    end, _ = await turn(bench)
    assert isinstance(end, Failed)
    assert (end.why, end.message) == (Why.MISSING, says)


@pytest.mark.parametrize(
    ("why", "continuable"),
    [
        (Why.AUTH, False),
        (Why.QUOTA, False),
        (Why.CONTEXT, False),
        (Why.REFUSED, False),
        (Why.BAD_MODEL, False),
        (Why.OVERLOADED, True),
        (Why.TRANSPORT, True),
    ],
)
async def test_a_failing_provider_is_named(bench: World, why: Why, continuable: bool) -> None:
    bench.play({"fail": {"why": why.value}})
    end, _ = await turn(bench)
    assert isinstance(end, Failed)
    assert (end.why, end.continuable) == (why, continuable)


async def test_a_usage_limit_is_no_failure_and_says_until_when(bench: World) -> None:
    bench.play({"limit": {"seconds": 7200}})
    end, _ = await turn(bench)
    assert isinstance(end, Limited)
    assert end.until is not None
    assert timedelta(minutes=-2) < end.until - datetime.now(UTC) - timedelta(hours=2) < timedelta(minutes=2)
