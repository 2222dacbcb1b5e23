"""deliver-lite with the real daemon: a few answers, one approval of requirements and plan, a merged change."""

from __future__ import annotations

import pytest

from tests.journeys.small_world import Small

ONE_SEAT = ("--set", "council.seats=scripted/one", "--set", "gates.setup=off")


@pytest.mark.timeout(400)
def test_a_small_ticket_is_planned_by_one_seat_approved_once_and_merged(small: Small) -> None:
    new = ("ticket", "new", "GRUE", "Say goodbye", "--sop", "deliver-lite", *ONE_SEAT, "--start", "--json")
    key = small.cli(*new).json["key"]
    assert small.cli("interview", "answer", small.asked(key)["ticket"], "Q01=@goodbye").code == 0
    small.asked(key)
    assert small.cli("interview", "answer", key, "QFF1=No.").code == 0

    gate = small.asked(key)
    small.approve(key, "requirements and the plan of work")
    small.approve(key, "Merge")
    watched = small.cli("ticket", "watch", key)
    shown = small.cli("ticket", "show", key, "--json").json

    assert [one["kind"] for one in gate["shows"]] == ["prd", "beads"]
    assert (watched.code, shown["status"], shown["current"]["change"]["state"]) == (0, "completed", "merged")
