"""The reckoning of benchmarks/context.py: what a session, and what a conversation, sends again."""

from __future__ import annotations

from benchmarks.context import Sent, Turn, conversation, not_yet_said, of_one_seat, planned


def turn(template: str, *parts: tuple[str, int], seat: str = "a", talk: str = "", reply: int = 10) -> Turn:
    ledger = tuple((name, f"{name}-{tokens}", tokens) for name, tokens in parts)
    return Turn(template, seat, talk or f"{template}-{seat}", sum(tokens for _, tokens in parts), reply, ledger)


PATH = (
    turn("scan", ("instructions", 50), ("ticket_details", 20)),
    turn("prd_draft", ("instructions", 60), ("ticket_details", 20), ("relevant_files", 30)),
    turn("prd_draft", ("instructions", 60), ("ticket_details", 20), ("relevant_files", 30), seat="b"),
    turn("prd_vote", ("instructions", 40), ("drafts", 20)),
)


def test_fresh_sessions_send_nothing_again() -> None:
    assert planned(PATH) == Sent(new=350, again=0, largest=110)


def test_a_session_that_goes_on_sends_its_conversation_again() -> None:
    path = (turn("turn", ("answers", 30), talk="t"), turn("turn", ("answers", 5), talk="t"))
    assert planned(path) == Sent(new=35, again=40, largest=45)


def test_a_conversation_sends_every_brief_and_reply_before_again() -> None:
    sent = conversation(PATH, lambda one: one.brief)
    assert sent == Sent(new=350, again=80 + (80 + 120) + (80 + 120 + 120), largest=380)


def test_what_was_said_or_replied_once_is_not_said_again() -> None:
    given = not_yet_said()
    assert [given(one) for one in PATH] == [70, 60, 0, 40]


def test_one_seat_neither_votes_nor_drafts_twice() -> None:
    assert [(one.template, one.seat) for one in of_one_seat(PATH)] == [("scan", "a"), ("prd_draft", "a")]


def test_what_was_said_before_weighs_a_tenth() -> None:
    assert Sent(new=100, again=50, largest=0).weighted == 105
