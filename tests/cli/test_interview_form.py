"""The terminal form of the interview, at a scripted terminal, over an interview kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from questions_for_tests import interviewed

from beadmill.artifacts.interview import InterviewSession, Turn
from beadmill.cli._answering import Command, Wrong, drafted, understood, with_answer
from beadmill.cli.interview_form import converse
from beadmill.domain.values import ArtifactRef, Sha
from beadmill.errors import Conflict, Stale
from beadmill.nodes._batch import batch_gate
from beadmill.nodes._session import with_all_skipped, with_answers, with_turn

KEY, AT = "API-1", "2026-01-02T12:00:00+00:00"
REF = ArtifactRef("interview_session", Sha("0" * 64), 1)
TWO = {"answer_type": "single_choice", "options": [{"id": "csv", "label": "As CSV"}, {"id": "e", "label": "As text"}]}
MANY = {**TWO, "answer_type": "multiple_choice"}
YES_NO = {"answer_type": "single_choice", "options": [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]}
FREE = {"answer_type": "free_text", "options": []}


def chose(*ids: str, note: str = "") -> dict[str, Any]:
    return {"free_text": note, "selected_option_ids": list(ids)}


# --- one line -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("question", "line", "answer"),
    [
        (TWO, "1", chose("csv")),
        (TWO, "b", chose("e")),
        (TWO, "As CSV", chose("csv")),
        (TWO, "1: with a header", chose("csv", note="with a header")),
        (TWO, "neither of them", chose(note="neither of them")),
        (MANY, "2, 1: both", chose("csv", "e", note="both")),
        (MANY, "a b", chose("csv", "e")),
        (YES_NO, "y", chose("yes")),
        (YES_NO, "no", chose("no")),
        (FREE, "1: a list", {"free_text": "1: a list"}),
        (FREE, "e", Command("e")),
        (TWO, ":e", Command("e")),
        (TWO, ":s not sure yet", Command("s", "not sure yet")),
        (FREE, "?", Command("help")),
        (FREE, "   ", None),
    ],
)
def test_a_line_is_understood(question: Any, line: str, answer: object) -> None:
    assert understood(question, line) == answer


@pytest.mark.parametrize(("question", "line"), [(TWO, "3"), (TWO, "1,2"), (FREE, ":zz")])
def test_a_line_that_cannot_be_meant_is_asked_again(question: Any, line: str) -> None:
    assert isinstance(understood(question, line), Wrong)


@pytest.mark.parametrize("answer", [chose("csv", note="x"), {"skipped": True, "skip_reason": "why"}])
def test_a_draft_gives_back_the_answer_it_was_given(answer: dict[str, Any]) -> None:
    question = {**MANY, "id": "Q01"}
    body = with_answer({"q.Q01.skip": ["1"], "q.Q02.text": ["other"]}, "q", question, answer)
    assert (drafted(body, "q", question), body["q.Q02.text"]) == (answer, ["other"])


# --- a whole interview --------------------------------------------------------------------------------------------
@dataclass
class Interview:
    """What the daemon does to a session, in memory: the gate of the newest batch, its draft, its one answer."""

    session: InterviewSession = field(default_factory=interviewed)
    drafts: dict[str, Any] = field(default_factory=dict)
    sent: list[tuple[str, Any]] = field(default_factory=list)
    first: Conflict | None = None  # somebody else was first
    saved_elsewhere: dict[str, Any] | None = None

    @property
    def gate(self) -> dict[str, Any] | None:
        if self.session.complete:
            return None
        batch = self.session.batches[-1]
        request = batch_gate(self.session, batch, REF, key=KEY)
        return {"id": f"r/v/batch-{batch.number}#0", "etag": f"e{batch.number}", "detail": request.detail}

    def call(self, operation: str, *, body: Any = None, query: Any = None, etag: str = "", **path: Any) -> Any:
        return getattr(self, operation.replace(".", "_"))(body, etag)

    def interviews_show(self, _body: Any, _etag: str) -> Any:
        return {"ticket": KEY, "gate": self.gate, "answered": len(self.session.answers)}

    def tickets_show(self, _body: Any, _etag: str) -> Any:
        approve = {"kind": "approve", "title": "Approve the interview", "answer_with": "beadmill gate approve API-1"}
        return {
            "status": "waiting_interview_approval",
            "hold": "none",
            "state": "active",
            "current": {"gates": [approve]},
        }

    def drafts_show(self, _body: Any, _etag: str) -> Any:
        return self.drafts or {"body": None, "revision": 0}

    def drafts_save(self, body: Any, _etag: str) -> Any:
        if self.saved_elsewhere is not None:
            self.drafts = {"body": self.saved_elsewhere, "revision": 7}
            self.saved_elsewhere = None
            raise Stale("saved in another window", code="DRAFT_STALE")
        self.drafts = {"body": body["body"], "revision": body["revision"] + 1}
        return self.drafts

    def interviews_answer(self, body: Any, etag: str) -> None:
        self._decide("answer", body, etag)
        session = with_answers(self.session, body, at=AT)
        over = session.batches[-1].is_final_free_form
        self.session = (
            session.model_copy(update={"complete": True}) if over else with_turn(session, Turn(complete=True))
        )

    def interviews_skip_all(self, body: Any, etag: str) -> None:
        self._decide("skip_all", body, etag)
        self.session = with_all_skipped(self.session, body, reason=body["reason"], at=AT)

    def _decide(self, choice: str, body: Any, etag: str) -> None:
        if self.first is not None:
            self.session = with_turn(with_answers(self.session, {}, at=AT), Turn(complete=True))
            refused, self.first = self.first, None
            raise refused
        assert (self.gate or {})["etag"] == etag
        self.sent.append((choice, body))
        self.drafts = {}


@dataclass
class Typing:
    """A terminal at which ``lines`` are typed; then the person presses Ctrl-C."""

    lines: list[str]
    written: str = ""
    shown: list[str] = field(default_factory=list)

    def read(self, prompt: str) -> str:
        if not self.lines:
            raise KeyboardInterrupt
        return self.lines.pop(0)

    def say(self, text: str = "", style: str = "") -> None:
        self.shown.append(text)

    def write(self, text: str) -> str:
        return self.written

    def until(self, words: str, ready: Callable[[], Any]) -> Any:
        return ready()


def typed(interview: Interview, lines: Sequence[str], written: str = "") -> Typing:
    desk = Typing(list(lines), written)
    assert converse(interview, KEY, desk) == 0
    return desk


REST = ["1,2: both", "Nothing", ""]


def test_the_form_goes_on_until_the_interview_is_over_and_says_what_comes_then() -> None:
    interview = Interview()
    desk = typed(interview, [*REST, "No", ""])
    both = {"free_text": "both", "selected_option_ids": ["staff", "customers"]}
    assert interview.sent == [
        ("answer", {"answers": {"Q02": both, "Q03": {"free_text": "Nothing"}}, "edits": {}}),
        ("answer", {"answers": {"QFF1": {"free_text": "No"}}, "edits": {}}),
    ]
    assert desk.shown[-2:] == ["Waits for you: Approve the interview", "  beadmill gate approve API-1"]


def test_a_batch_is_shown_with_progress_commentary_and_what_depends_on_it() -> None:
    shown = typed(Interview(), []).shown
    assert "API-1: batch 2, question 3 of about 4" in shown
    assert "Now the rest." in shown
    assert shown[shown.index("1 of 2 · Q02 · Structure") :][:2] == ["1 of 2 · Q02 · Structure", "Which?"]
    assert "  2 b  Customers" in shown


def test_leaving_keeps_what_was_answered_and_coming_back_goes_on_from_it() -> None:
    interview = Interview()
    left = typed(interview, ["1"])
    assert left.shown[-2:] == ["Detached. Your 1 unsent answer is kept.", "Go on: beadmill interview answer API-1"]
    back = typed(interview, ["", "Nothing", ""])
    assert "Your 1 unsent answer is filled in." in back.shown
    assert interview.sent[0][1]["answers"]["Q02"]["selected_option_ids"] == ["staff"]


def test_one_goes_back_within_the_batch_and_changes_an_answer_at_the_review() -> None:
    interview = Interview()
    typed(interview, ["1", ":b", "2", "Nothing", "2", "Something", ""])
    answers = interview.sent[0][1]["answers"]
    assert (answers["Q02"]["selected_option_ids"], answers["Q03"]["free_text"]) == (["customers"], "Something")


def test_an_earlier_answer_is_listed_and_changed_and_goes_along_as_an_edit() -> None:
    interview = Interview()
    desk = typed(interview, [":l", ":c q01", "2: they pay", *REST])
    assert desk.shown[desk.shown.index("Q01  Who exports?") + 1] == "     Staff only"
    assert interview.sent[0][1]["edits"] == {"Q01": {"free_text": "they pay", "selected_option_ids": ["customers"]}}


def test_an_earlier_answer_that_stays_as_it_was_is_no_edit() -> None:
    interview = Interview()
    typed(interview, [":c Q01", "1", *REST])
    assert interview.sent[0][1]["edits"] == {}


def test_a_question_is_skipped_with_a_reason_and_never_by_an_empty_line() -> None:
    interview = Interview()
    desk = typed(interview, ["", ":s not mine to say", *REST[1:]])
    assert "Nothing was typed. :s skips the question, ? lists what you can type." in desk.shown
    assert interview.sent[0][1]["answers"]["Q02"] == {"skipped": True, "skip_reason": "not mine to say"}


def test_the_rest_is_skipped_only_when_it_is_meant_and_answers_go_along() -> None:
    interview = Interview()
    typed(interview, ["1", ":all no time", "n", ":all no time", "y"])
    choice, body = interview.sent[0]
    assert (choice, body["reason"], list(body["answers"])) == ("skip_all", "no time", ["Q02"])


def test_longer_answers_are_written_in_the_editor() -> None:
    interview = Interview()
    typed(interview, ["1", "e", ""], written="one\n\ntwo\n")
    assert interview.sent[0][1]["answers"]["Q03"] == {"free_text": "one\n\ntwo"}


def test_an_answer_of_another_window_is_taken_over_and_not_written_over() -> None:
    interview = Interview(saved_elsewhere={"q.Q03.text": ["from the browser"]})
    typed(interview, ["1", "", ""])
    answers = interview.sent[0][1]["answers"]
    assert (answers["Q02"]["selected_option_ids"], answers["Q03"]["free_text"]) == (["staff"], "from the browser")


def test_when_somebody_was_first_it_is_said_and_the_next_batch_comes() -> None:
    interview = Interview(first=Conflict("This was already answered: answer by user:eve", code="ALREADY_ANSWERED"))
    desk = typed(interview, [*REST, "No", ""])
    assert "Not sent: This was already answered: answer by user:eve." in desk.shown
    assert [list(body["answers"]) for _, body in interview.sent] == [["QFF1"]]
