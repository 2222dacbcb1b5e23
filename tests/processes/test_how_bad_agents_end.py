"""Agents that misbehave: each ends in its own clear state, with its result kept and no process left."""

from __future__ import annotations

import time
from datetime import timedelta

from beadmill.domain.ended import Failed, Why
from beadmill.processes.spec import EventKind
from tests.processes.bad_agents import FAILURE, FOREVER, RESULT, STARTED
from tests.processes.bad_world import BadWorld, brief, warnings

SECOND = timedelta(seconds=1)


# --- how a turn ends ------------------------------------------------------------------------------------------------
async def test_c41_a_result_without_an_exit_counts_after_a_grace(bad: BadWorld) -> None:
    end, events = await bad.turn(STARTED + RESULT + FOREVER, grace=0.5)
    assert brief(end) == "done"
    assert warnings(events) == ["the agent gave its result and did not exit: it was ended after 0.5 s"]


async def test_an_agent_that_writes_on_and_on_behind_its_result_is_ended(bad: BadWorld) -> None:
    end, events = await bad.turn(STARTED + RESULT + 'exec yes \'{"type": "text", "text": "more"}\'', grace=0.5)
    assert brief(end) == "done"
    assert warnings(events)[-1] == "the agent gave its result and did not exit: it was ended after 0.5 s"


async def test_a_result_counts_whatever_the_exit_code_says(bad: BadWorld) -> None:
    end, events = await bad.turn(STARTED + RESULT + "exit 7")
    assert (brief(end), warnings(events)) == ("done", [])


async def test_an_exit_without_a_result_says_what_stood_on_stderr(bad: BadWorld) -> None:
    end, _ = await bad.turn(STARTED + "echo 'no luck' >&2; exit 7")
    says = "the scripted agent exited with 7 and no result: no luck"
    assert brief(end) == (Why.NO_RESULT, says, True)


async def test_an_error_with_exit_code_0_is_an_error(bad: BadWorld) -> None:
    end, _ = await bad.turn(STARTED + FAILURE + "exit 0")
    assert brief(end) == (Why.OVERLOADED, "at capacity", True)


async def test_an_agent_that_says_nothing_at_all_has_no_result(bad: BadWorld) -> None:
    end, events = await bad.turn("exit 0")
    assert isinstance(end, Failed)
    assert (end.why, [e.kind for e in events]) == (Why.NO_RESULT, [EventKind.ENDED])


async def test_an_agent_that_kills_itself_has_no_result(bad: BadWorld) -> None:
    end, _ = await bad.turn(STARTED + "kill -9 $$")
    assert brief(end) == (Why.NO_RESULT, "the scripted agent exited with -9 and no result: ", True)


async def test_a_line_that_lacks_what_it_should_have_is_shown_and_the_turn_goes_on(bad: BadWorld) -> None:
    end, events = await bad.turn('echo \'{"type": "start"}\'; ' + RESULT)
    assert brief(end) == "done"
    assert warnings(events) == ["a line was not understood: KeyError('conversation')"]


# --- limits ---------------------------------------------------------------------------------------------------------
async def test_c42_silence_ends_an_agent_that_hangs_in_the_middle(bad: BadWorld) -> None:
    end, _ = await bad.turn(STARTED + FOREVER, idle=SECOND)
    assert brief(end) == "idle"


async def test_a_budget_ends_an_agent_that_never_stops_talking(bad: BadWorld) -> None:
    talk = STARTED + 'while :; do echo \'{"type": "text", "text": "still at it"}\'; sleep 0.05; done'
    end, _ = await bad.turn(talk, budget=SECOND, idle=SECOND)
    assert brief(end) == "budget"


# --- stdin and stdout -----------------------------------------------------------------------------------------------
async def test_c43_an_agent_that_reads_stdin_to_its_end_is_not_kept_waiting(bad: BadWorld) -> None:
    end, _ = await bad.turn("cat > brief; cat; cat; " + RESULT)
    assert brief(end) == "done"
    assert (bad.tree / "brief").read_text().endswith("\ndo it")


async def test_an_agent_that_closes_its_stdout_may_still_finish_its_work(bad: BadWorld) -> None:
    work = STARTED + RESULT + "exec >&- 2>&-; sleep 0.7; touch made"
    end, _ = await bad.turn(work)
    assert (brief(end), (bad.tree / "made").exists()) == ("done", True)


async def test_c44_a_grandchild_that_holds_the_pipe_holds_up_nobody(bad: BadWorld) -> None:
    begun = time.monotonic()
    end, _ = await bad.turn(STARTED + RESULT + "(setsid sleep 300 &) ; exit 0")
    assert brief(end) == "done"
    assert time.monotonic() - begun < 20


async def test_a_grandchild_that_goes_on_writing_into_the_pipe_holds_up_nobody(bad: BadWorld) -> None:
    end, _ = await bad.turn(STARTED + "(setsid yes more &) ; exit 3")
    assert isinstance(end, Failed)
    assert end.why is Why.NO_RESULT


async def test_c50_c55_escapes_nul_and_broken_text_cost_no_result(bad: BadWorld) -> None:
    lines = (
        b'\033[2K\033[1G\033]0;title\007{"type": "start", "conversation": "c"}\r\n',
        b"a\0\377\033[31mred\033[0m\n",
        b'{"type": "result", "text": "d\377o\0n\\ud800e"}\n',
    )
    end, events = await bad.turn(python=f"import os; os.write(1, {b''.join(lines)!r})")
    assert brief(end) == "d\ufffdo\ufffdn\ufffde"
    shown = [e.data for e in events if e.kind is EventKind.OUTPUT]
    assert shown == [{"stream": "stdout", "text": "a\ufffd\ufffd\033[31mred\033[0m"}]
    assert end.session.conversation == "c"
