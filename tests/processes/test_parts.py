"""The small parts of the runner on their own: the clock, lines out of bytes, bounded logs, trusted programs."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from beadmill.domain.values import Usage
from beadmill.errors import Refused, Unavailable
from beadmill.processes import executables
from beadmill.processes.clock import WorkClock
from beadmill.processes.environment import allowed
from beadmill.processes.eventlog import LONGEST, EventLog
from beadmill.processes.pipes import LINE_LIMIT, QUEUE_LIMIT, Lines, Tail
from beadmill.processes.spec import EventKind
from beadmill.redact import Redactor


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_held_time_is_not_worked() -> None:
    hand = Hand()
    clock = WorkClock(hand)
    hand.now += 5
    clock.hold()
    clock.hold()
    hand.now += 1_000
    assert (clock.worked, clock.held) == (5, True)
    clock.release()
    clock.release()
    hand.now += 2
    assert (clock.worked, clock.held) == (7, False)


async def test_the_budget_wins_over_the_silence_only_when_it_is_spent() -> None:
    hand = Hand()
    clock = WorkClock(hand)
    clock.touch()
    hand.now += 10
    assert await clock.lapse(timedelta(seconds=60), timedelta(seconds=10)) is True
    assert await clock.lapse(timedelta(seconds=10), timedelta(seconds=10)) is False


async def test_a_word_starts_the_silence_again() -> None:
    hand = Hand()
    clock = WorkClock(hand)
    hand.now += 9
    clock.touch()
    hand.now += 9
    lapse = asyncio.create_task(clock.lapse(timedelta(seconds=60), timedelta(seconds=10)))
    await asyncio.sleep(0)
    assert not lapse.done()
    hand.now += 1
    clock.release()
    assert await lapse is True


async def read_all(lines: Lines) -> list[bytes]:
    return [line async for line in lines.read()]


async def test_lines_come_whole_however_they_arrive() -> None:
    lines = Lines()
    for piece in (b"on", b"e\r\ntwo\n\nth", b"ree"):
        lines.feed(piece)
    lines.end()
    assert await read_all(lines) == [b"one", b"two", b"", b"three"]


async def test_an_endless_line_is_cut() -> None:
    lines = Lines()
    for _ in range(LINE_LIMIT // 2**20 + 2):
        lines.feed(b"x" * 2**20)
    lines.feed(b"\nnext\n")
    lines.end()
    assert [len(line) for line in await read_all(lines)] == [LINE_LIMIT, 4]


async def test_an_unread_flood_pauses_the_pipe_until_it_is_read() -> None:
    calls: list[str] = []
    lines = Lines()
    lines.pause, lines.resume = lambda: calls.append("pause"), lambda: calls.append("resume")
    lines.feed((b"x" * 1_000 + b"\n") * (QUEUE_LIMIT // 1_000))
    assert calls == ["pause"]
    lines.end()
    await read_all(lines)
    assert calls[:2] == ["pause", "resume"]


def test_a_tail_forgets_the_beginning() -> None:
    tail = Tail(10)
    for n in range(10_000):
        tail.feed(b"%d\n" % n)
    assert tail.text(Redactor()) == "9998\n9999\n"


def rows(path: Path) -> list[tuple[str, dict[str, object]]]:
    return [(row["kind"], row["data"]) for row in map(json.loads, path.read_text().splitlines())]


def test_a_full_event_log_says_so_and_keeps_what_a_result_needs(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", Redactor(), heard=lambda: None, most=500)
    for _ in range(100):
        log.say(EventKind.TEXT, text="x" * 50)
    log.say(EventKind.USAGE, input=1, cached=2, output=3, reasoning=0)
    log.say(EventKind.STARTED, conversation="c")
    log.close()
    kinds = [kind for kind, _ in rows(tmp_path / "events.jsonl")]
    assert kinds == ["text"] * 4 + ["warning", "usage", "started"]
    assert (log.usage, log.conversation) == (Usage(1, 2, 3), "c")


def test_a_full_event_log_stays_bounded_whatever_an_agent_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beadmill.processes.eventlog.SPARE", 1_000)
    log = EventLog(tmp_path / "events.jsonl", Redactor(), heard=lambda: None, most=500)
    for _ in range(1_000):
        log.say(EventKind.USAGE, input=1, cached=0, output=0, reasoning=0)
    log.say(EventKind.ENDED, type="Replied")
    log.close()
    assert (tmp_path / "events.jsonl").stat().st_size < 2_000
    assert (rows(tmp_path / "events.jsonl")[-1][0], log.usage) == ("ended", Usage(input=1_000))


def test_a_huge_string_in_an_event_is_cut(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", Redactor(), heard=lambda: None)
    log.say(EventKind.TOOL, input={"content": "x" * (LONGEST + 5)})
    log.close()
    ((_, data),) = rows(tmp_path / "events.jsonl")
    assert data == {"input": {"content": "x" * LONGEST + " … 5 characters left out"}}


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\necho tool 1.2\n")
    path.chmod(mode)
    return path


def test_a_program_that_everybody_may_replace_is_refused(tmp_path: Path) -> None:
    tool = program(tmp_path / "bin" / "tool", 0o757)
    assert executables.why_untrusted(tool) == f"everybody may write to {tool}"
    with pytest.raises(Refused, match="is not run: everybody may write to"):
        executables.require_trusted(tool, {})


def test_a_folder_above_counts_too_and_can_be_opted_in(tmp_path: Path) -> None:
    tool = program(tmp_path / "bin" / "tool")
    tool.parent.chmod(0o777)
    assert executables.why_untrusted(tool) == f"everybody may write to {tool.parent}"
    env = {"BEADMILL_TRUSTED_EXECUTABLE_DIRS": f"relative:{tool.parent}"}
    assert executables.require_trusted(tool, env) == tool


def test_a_program_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = program(tmp_path / "tool")
    os.chown(tool, 4242, -1) if os.getuid() == 0 else monkeypatch.setattr(os, "getuid", lambda: 4242)
    assert "belongs to another user" in executables.why_untrusted(tool)


async def test_a_probe_sees_what_it_is_given_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "BEADMILL_ADMIN_TOKEN", "DATABASE_URL"):
        monkeypatch.setenv(name, "canary-of-a-secret")
    _, out, _ = await executables.ask(["/usr/bin/env"], env=allowed(os.environ))
    assert ("PATH=" in out, "canary-of-a-secret" in out) == (True, False)


def test_a_program_is_found_behind_its_links(tmp_path: Path) -> None:
    tool = program(tmp_path / "real" / "tool")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").symlink_to(tool)
    assert executables.find("tool", path=str(tmp_path / "bin")) == tool
    assert executables.find("other", path=str(tmp_path / "bin")) is None


async def test_a_small_question_has_an_answer_or_a_deadline(tmp_path: Path) -> None:
    tool = program(tmp_path / "tool")
    assert await executables.ask([str(tool)], env={}) == (0, "tool 1.2\n", "")
    with pytest.raises(Unavailable, match=r"gave no answer in 0.2 s"):
        await executables.ask(["/bin/sleep", "300"], env={}, patience=0.2)
    with pytest.raises(Unavailable, match="cannot be started"):
        await executables.ask([str(tmp_path / "nothing")], env={})
