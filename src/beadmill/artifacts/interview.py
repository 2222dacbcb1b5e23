"""Questions, the live session's snapshot, and the interview with its Full Answers (reference §3)."""

from __future__ import annotations

from typing import ClassVar, Literal

from beadmill.artifacts.base import Document, Record

PhaseName = Literal["Foundation", "Structure", "Assembly"]
AnswerType = Literal["free_text", "single_choice", "multiple_choice"]
Source = Literal["compiled", "prompt_follow_up", "coverage_follow_up", "final_free_form"]


class Question(Record):
    """One compiled question; ids ``Q01`` …"""

    id: str
    phase: PhaseName
    question: str


class Questions(Document):
    """The compiled list: a draft of one seat, or the refined one."""

    kind: ClassVar[str] = "questions"

    questions: tuple[Question, ...]


class Option(Record):
    id: str
    label: str


class Asked(Record):
    """A question as it is put to a person."""

    id: str
    question: str
    phase: PhaseName
    priority: Literal["critical", "high", "medium", "low"] = "medium"
    rationale: str = ""
    answer_type: AnswerType = "free_text"
    options: tuple[Option, ...] = ()
    source: Source = "compiled"
    round: int = 0


class Progress(Record):
    current: int
    total: int


class Turn(Record):
    """One reply of the live interviewer: a batch of 1-3 questions, or complete."""

    complete: bool = False
    batch_number: int = 0
    progress: Progress | None = None
    is_final_free_form: bool = False
    ai_commentary: str = ""
    questions: tuple[Asked, ...] = ()


class Answer(Record):
    skipped: bool = False
    selected_option_ids: tuple[str, ...] = ()
    free_text: str = ""
    answered_by: Literal["user", "user_skip", "ai_skip"] = "user"
    answered_at: str = ""
    skip_reason: str | None = None


class SessionAnswer(Answer):
    """With its history: ``batch`` is the one it came with (of an edit, the later one)."""

    batch: int = 0
    skipped_at: str = ""

    @property
    def plain(self) -> Answer:
        return Answer.model_validate(self.model_dump(include=set(Answer.model_fields)))


class Batch(Record):
    """``submitted_at`` is empty while it waits."""

    number: int
    source: Literal["session", "coverage"] = "session"
    question_ids: tuple[str, ...]
    is_final_free_form: bool = False
    commentary: str = ""
    progress: Progress | None = None
    submitted_at: str = ""


class InterviewSummary(Record):
    goals: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    non_goals: tuple[str, ...] = ()
    final_free_form_answer: str = ""


class InterviewSession(Document):
    """App-owned snapshot: survives restarts, is the truth behind interview.yaml (§3.3)."""

    kind: ClassVar[str] = "interview_session"

    winner: str = ""
    max_questions: int = 50
    max_follow_ups: int = 0
    compiled: tuple[Question, ...] = ()
    questions: tuple[Asked, ...] = ()
    answers: dict[str, SessionAnswer] = {}
    batches: tuple[Batch, ...] = ()
    complete: bool = False
    completed_at: str = ""
    skipped_all: bool = False
    summary: InterviewSummary = InterviewSummary()


class InterviewQuestion(Record):
    id: str
    phase: PhaseName
    prompt: str
    source: Source = "compiled"
    follow_up_round: int = 0
    answer_type: AnswerType = "free_text"
    options: tuple[Option, ...] = ()
    answer: Answer = Answer()


class FollowUpRound(Record):
    round_number: int
    source: Literal["prompt", "coverage"]
    question_ids: tuple[str, ...]


class GeneratedBy(Record):
    winner_model: str = ""
    generated_at: str = ""
    canonicalization: str = "server_normalized"


class Approval(Record):
    approved_by: str = ""
    approved_at: str = ""


class Interview(Document):
    """interview.yaml (§3.6)."""

    kind: ClassVar[str] = "interview"

    schema_version: Literal[1] = 1
    ticket_id: str
    artifact: Literal["interview"] = "interview"
    status: Literal["draft", "approved"] = "draft"
    generated_by: GeneratedBy = GeneratedBy()
    questions: tuple[InterviewQuestion, ...] = ()
    follow_up_rounds: tuple[FollowUpRound, ...] = ()
    summary: InterviewSummary = InterviewSummary()
    approval: Approval = Approval()


class FullAnswers(Document):
    """The approved interview in which one seat has answered what was skipped (§4.1)."""

    kind: ClassVar[str] = "full_answers"

    schema_version: Literal[1] = 1
    ticket_id: str
    artifact: Literal["full_answers"] = "full_answers"
    questions: tuple[InterviewQuestion, ...] = ()
    summary: InterviewSummary = InterviewSummary()


class FilledAnswer(Record):
    """What a seat writes for one skipped question; Beadmill lays it over the interview."""

    id: str
    selected_option_ids: tuple[str, ...] = ()
    free_text: str = ""


class FilledAnswers(Record):
    answers: tuple[FilledAnswer, ...] = ()
