from __future__ import annotations

from beadmill.artifacts.interview import Asked, InterviewSession, InterviewSummary, Option, Question, Turn
from beadmill.nodes._session import (
    answer_text,
    asked_by,
    follow_ups_left,
    interview_of,
    so_far,
    with_all_skipped,
    with_answers,
    with_edits,
    with_turn,
)

AT = "2026-01-02T12:00:00+00:00"
COMPILED = (
    Question(id="Q01", phase="Foundation", question="Who?"),
    Question(id="Q02", phase="Structure", question="What?"),
)
CHOICE = Asked(
    id="Q01",
    question="Who?",
    phase="Foundation",
    answer_type="single_choice",
    options=(Option(id="a", label="Ann"), Option(id="b", label="Ben")),
)


def text(name: str) -> Asked:
    return Asked(id=name, question=f"{name}?", phase="Structure")


def start(follow_ups: int = 1) -> InterviewSession:
    return InterviewSession(winner="scripted/a", max_questions=5, max_follow_ups=follow_ups, compiled=COMPILED)


def last(session: InterviewSession) -> list[str]:
    return [q.id for q in asked_by(session, session.batches[-1])]


def test_a_batch_holds_at_most_three_questions() -> None:
    session = with_turn(start(9), Turn(questions=tuple(text(f"FU{n}") for n in range(1, 6))))
    assert last(session) == ["FU1", "FU2", "FU3"]


def test_follow_ups_end_with_their_budget() -> None:
    session = with_turn(start(1), Turn(questions=(text("FU1"), text("FU2"), text("Q02"))))
    assert (last(session), follow_ups_left(session)) == (["FU1", "Q02"], 0)


def test_an_id_once_asked_is_closed_and_the_next_compiled_question_is_put_instead() -> None:
    session = with_turn(start(), Turn(questions=(CHOICE,)))
    session = with_answers(session, {"answers": {"Q01": {"free_text": "Ann"}}}, at=AT)
    assert last(with_turn(session, Turn(questions=(CHOICE,)))) == ["Q02"]


def test_a_complete_interview_still_asks_the_free_form_question() -> None:
    session = with_turn(start(), Turn(complete=True))
    assert (last(session), session.batches[-1].is_final_free_form) == (["QFF1"], True)


def test_the_free_form_question_stands_alone_and_is_free_text() -> None:
    turn = Turn(is_final_free_form=True, questions=(CHOICE.model_copy(update={"id": "X"}), text("FU1")))
    session = with_turn(start(), turn)
    assert [(q.id, q.answer_type, q.question) for q in asked_by(session, session.batches[-1])] == [
        ("QFF1", "free_text", "Who?")
    ]


def test_a_blank_answer_is_a_skip() -> None:
    session = with_answers(with_turn(start(), Turn(questions=(CHOICE,))), {"answers": {}}, at=AT)
    assert (session.answers["Q01"].skipped, session.answers["Q01"].answered_by) == (True, "user_skip")


def test_unknown_options_are_ignored_and_a_single_choice_keeps_one() -> None:
    said = {"answers": {"Q01": {"selected_option_ids": ["x", "b", "a"]}}}
    session = with_answers(with_turn(start(), Turn(questions=(CHOICE,))), said, at=AT)
    assert session.answers["Q01"].selected_option_ids == ("b",)


def test_an_edit_reaches_only_questions_of_earlier_batches() -> None:
    session = with_answers(with_turn(start(), Turn(questions=(CHOICE,))), {}, at=AT)
    session = with_turn(session, Turn(questions=(text("Q02"),)))
    said = {"edits": {"Q01": {"free_text": "Eve"}, "Q02": {"free_text": "no"}, "Q99": {"free_text": "no"}}}
    session = with_answers(session, said, at=AT)
    assert {name: one.free_text for name, one in session.answers.items()} == {"Q01": "Eve", "Q02": ""}


def test_skipping_all_keeps_answers_and_own_reasons() -> None:
    session = with_turn(start(2), Turn(questions=(CHOICE, text("FU1"))))
    said = {"answers": {"Q01": {"free_text": "Ann"}, "FU1": {"skipped": True, "skip_reason": "own"}}}
    session = with_all_skipped(session, said, reason="bulk", at=AT)
    assert {name: one.skip_reason for name, one in session.answers.items()} == {
        "Q01": None,
        "FU1": "own",
        "Q02": "bulk",
    }
    assert (session.complete, session.skipped_all) == (True, True)


def test_what_the_interviewer_left_out_is_in_the_interview_as_its_own_skip() -> None:
    session = with_answers(with_turn(start(), Turn(questions=(CHOICE,))), {"answers": {}}, at=AT)
    done = interview_of(session, key="DEMO-1", at=AT)
    assert [(q.id, q.answer.answered_by) for q in done.questions] == [("Q01", "user_skip"), ("Q02", "ai_skip")]


def test_rounds_name_the_follow_ups_of_each_batch() -> None:
    session = with_answers(with_turn(start(2), Turn(questions=(CHOICE, text("FU1")))), {}, at=AT)
    session = with_answers(with_turn(session, Turn(questions=(text("FU2"),))), {}, at=AT)
    rounds = interview_of(session, key="DEMO-1", at=AT).follow_up_rounds
    assert [(r.round_number, r.source, r.question_ids) for r in rounds] == [
        (1, "prompt", ("FU1",)),
        (2, "prompt", ("FU2",)),
    ]


def test_a_model_reads_labels_and_never_why_a_question_was_skipped() -> None:
    session = with_turn(start(), Turn(questions=(CHOICE, text("Q02"))))
    said = {"Q01": {"selected_option_ids": ["a"], "free_text": "she knows"}, "Q02": {"skip_reason": "private"}}
    session = with_answers(session, {"answers": said}, at=AT)
    lines = [answer_text(q, session.answers[q.id]) for q in session.questions]
    assert lines == ["Q01: Who?\n  chosen: Ann\n  note: she knows", "Q02: Q02?\n  skipped"]


def test_an_edit_throws_away_what_was_summed_up_from_the_old_answers() -> None:
    session = with_answers(with_turn(start(), Turn(questions=(CHOICE,))), {"answers": {"Q01": "x"}}, at=AT)
    summed = session.model_copy(update={"summary": InterviewSummary(goals=("Ann only",))})
    session = with_turn(summed, Turn(questions=(text("Q02"),)))
    same = with_edits(session, {"edits": {"Q02": {"free_text": "not yet answered"}}}, at=AT)
    changed = with_edits(session, {"edits": {"Q01": {"free_text": "Eve"}}}, at=AT)
    assert (same, changed.summary, changed.answers["Q01"].free_text) == (session, InterviewSummary(), "Eve")


def test_words_that_are_those_of_an_option_stay_a_note() -> None:
    said = {"answers": {"Q01": {"selected_option_ids": ["a"], "free_text": "Ann"}}}
    answer = with_answers(with_turn(start(), Turn(questions=(CHOICE,))), said, at=AT).answers["Q01"]
    assert (answer.selected_option_ids, answer.free_text) == (("a",), "Ann")


def test_a_change_of_mind_leaves_no_reason_for_skipping_behind() -> None:
    said = {"answers": {"Q01": {"skipped": True, "skip_reason": "later"}}}
    session = with_answers(with_turn(start(), Turn(questions=(CHOICE,))), said, at=AT)
    session = with_edits(
        with_turn(session, Turn(questions=(text("Q02"),))), {"edits": {"Q01": {"free_text": "Eve"}}}, at=AT
    )
    answer = session.answers["Q01"]
    assert (answer.skipped, answer.skip_reason, answer.skipped_at) == (False, None, "")


def test_skipping_all_records_no_earlier_skip_again() -> None:
    session = with_answers(with_turn(start(), Turn(questions=(CHOICE,))), {}, at=AT)
    session = with_all_skipped(with_turn(session, Turn(questions=(text("Q02"),))), {}, reason="bulk", at="later")
    assert {n: (a.skipped_at, a.skip_reason) for n, a in session.answers.items()} == {
        "Q01": (AT, None),
        "Q02": ("later", "bulk"),
    }


def test_who_takes_over_is_told_what_is_closed_and_what_is_open() -> None:
    session = with_turn(start(), Turn(questions=(CHOICE, text("FU1"))))
    session = with_answers(session, {"answers": {"Q01": {"free_text": "Ann"}, "FU1": {"skip_reason": "x"}}}, at=AT)
    assert so_far(session).split("\n\n") == [
        "Answered:\nQ01: Who?\n  answer: Ann",
        "Skipped by the person:\nFU1: FU1?",
        "Not asked yet:\nQ02 (Structure): What?",
    ]
