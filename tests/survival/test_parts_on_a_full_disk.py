"""The same without a small disk: writes are made to fail."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.processes import room
from beadmill.processes.eventlog import EventLog
from beadmill.processes.pipes import BoundedFile
from beadmill.processes.spec import EventKind
from beadmill.redact import Redactor

Write = Callable[[int, bytes], int]


class Full:
    """``os.write`` on a disk with ``left`` bytes."""

    def __init__(self, left: int, really: Write) -> None:
        self.left, self._really = left, really

    def __call__(self, file: int, data: bytes) -> int:
        if not self.left:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._really(file, bytes(data[: self.left]))
        self.left -= written
        return written


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Full:
    made = Full(10, os.write)
    monkeypatch.setattr(os, "write", made)
    return made


def test_events_wait_in_order_for_room_and_none_is_cut(tmp_path: Path, full: Full) -> None:
    log = EventLog(tmp_path / "events.jsonl", Redactor(), heard=lambda: None)
    log.say(EventKind.TEXT, text="one")
    log.say(EventKind.TEXT, text="two")
    with pytest.raises(OSError, match="No space"):
        log.close()
    full.left = 10_000
    log.close()
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["data"]["text"] for line in lines] == ["one", "two"]


def test_more_than_fits_into_memory_is_left_out_and_said(
    tmp_path: Path, full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MOST", 300)
    log = EventLog(tmp_path / "events.jsonl", Redactor(), heard=lambda: None)
    log.say(EventKind.TEXT, text="kept")
    log.say(EventKind.TEXT, text="x" * 300)
    full.left = 10_000
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["text", "warning"]
    assert lines[1]["data"]["message"].startswith("the disk was full: ")


def test_a_copy_of_output_has_a_gap_and_raises_nothing(tmp_path: Path, full: Full) -> None:
    file = BoundedFile(tmp_path / "stdout.log", Redactor())
    file.feed(b"123456789\n")
    file.feed(b"lost\n")
    full.left = 100
    file.feed(b"again\n")
    file.close()
    assert (tmp_path / "stdout.log").read_text() == "123456789\nagain\n"


async def test_what_must_be_written_is_tried_until_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "AGAIN", 0.0)
    errors = [OSError(errno.ENOSPC, "full"), OSError(errno.EDQUOT, "quota")]

    def act() -> str:
        if errors:
            raise errors.pop()
        return "written"

    assert (await room.room_for(act), errors) == ("written", [])


async def test_another_error_is_not_waited_for() -> None:
    def act() -> None:
        raise OSError(errno.EACCES, "no")

    with pytest.raises(OSError, match="no"):
        await room.room_for(act)
