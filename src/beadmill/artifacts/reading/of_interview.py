"""QUESTIONS, REFINED_QUESTIONS, TURN, FILLED_ANSWERS (reference §3, §4.1)."""

from __future__ import annotations

from collections.abc import Mapping

from beadmill.artifacts.interview import FilledAnswer, FilledAnswers, Interview, InterviewQuestion, Questions, Turn
from beadmill.artifacts.reading.ask import count, given, names, need, rows, twice
from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.of_changes import CHANGE_ALIASES, plain_changes, refined
from beadmill.artifacts.reading.replies import Refined, with_changes
from beadmill.artifacts.reading.shape import Context, Shape
from beadmill.artifacts.reading.tree import Tree, Unfit

PHASES = ("Foundation", "Structure", "Assembly")
FINAL = "QFF1"
QUESTION_ALIASES = {
    "question": ("prompt", "text", "question_text"),
    "phase": ("section", "stage"),
    "id": ("question_id",),
    "answer_type": ("type", "question_type"),
    "options": ("choices",),
    "ai_commentary": ("commentary",),
    "batch_number": ("batch",),
}


def number_questions(tree: Tree, _context: Context, notes: Notes) -> Tree:
    """Ids ``Q01`` …: missing ones are given, doubles are numbered on; the list is sorted by phase."""
    items = rows(tree, "questions")
    taken: set[str] = set()
    for row in items:
        wanted = _question_id(row.get("id"))
        if wanted and wanted not in taken:
            row["id"] = wanted
        else:
            row["id"] = next(
                f"Q{n:02}" for n in range(1, len(items) + len(taken) + 2) if f"Q{n:02}" not in _ids(items, taken)
            )
            notes.synthesized("question numbered", f"{wanted or 'no id'} → {row['id']}")
        taken.add(row["id"])
    order = {squash(phase): n for n, phase in enumerate(PHASES)}
    if items and len(items) == len(tree["questions"]):
        ordered = sorted(items, key=lambda row: order.get(squash(str(row.get("phase"))), 9))
        if ordered != items:
            notes.cleaned("questions sorted by phase")
        tree["questions"] = ordered
    return tree


def _ids(items: list[dict[str, Tree]], taken: set[str]) -> set[str]:
    return taken | {_question_id(row.get("id")) for row in items}


def _question_id(value: Tree) -> str:
    """``q1``, ``1``, ``Q-01`` → ``Q01``; other words stay; nothing → ''."""
    text = squash(str(value)) if isinstance(value, str) else ""
    digits = text.removeprefix("question").removeprefix("q")
    if digits.isdecimal() and digits.isascii() and len(digits) < 6:
        return f"Q{int(digits):02}"
    return value.strip() if isinstance(value, str) else ""


def check_questions(value: Questions, context: Context, _notes: Notes) -> Questions:
    """At least one question, none empty, not more than ``max_questions``."""
    most = count(context, "max_questions")
    if not value.questions and most != 0:
        raise Unfit("questions: the list is empty")
    if most is not None and len(value.questions) > most:
        raise Unfit(
            f"questions: {len(value.questions)} are more than the {most} allowed; merge or leave out the least important"
        )
    need([f"{q.id}: the question is empty" for q in value.questions if not q.question.strip()])
    return value


QUESTIONS: Shape[Questions] = Shape(
    "questions",
    Questions,
    aliases=QUESTION_ALIASES,
    normalise=number_questions,
    check=check_questions,
    root="questions",
    rules=("phase is Foundation, Structure or Assembly, in that order.",),
    context={"max_questions": "int: upper bound of the list"},
    example="""
questions:
  - id: Q01
    phase: Foundation
    question: Who will use the export, and how often?
  - id: Q02
    phase: Structure
    question: Which columns must the file have?
  - id: Q03
    phase: Assembly
    question: What should happen when a row cannot be read?
""",
)

REFINED_QUESTIONS: Shape[Refined[Questions]] = Shape(
    "refined_questions",
    with_changes(Questions),
    aliases=CHANGE_ALIASES | QUESTION_ALIASES,
    prepare=plain_changes,
    normalise=number_questions,
    check=refined(Questions, check_questions),
    root="questions",
    rules=(
        "The whole list, then one entry in changes for every question that differs from your own draft.",
        "type is modified, replaced, added or removed; inspiration names the alternative draft, or is left out.",
    ),
    context={
        "max_questions": "int: upper bound of the list",
        "before": "Questions: the winner's draft; claimed changes are checked against the real difference",
        "alternatives": "mapping of shown draft number → seat",
        "shown": "mapping of shown draft number → its document: an inspiration must name a part of it",
    },
    example=QUESTIONS.example
    + """
changes:
  - type: added
    item_type: question
    id: Q03
    before: ""
    after: What should happen when a row cannot be read?
    inspiration:
      draft: 2
      item: Q05
""",
)


def _prepare_turn(tree: Tree, _context: Context, notes: Notes) -> Tree:
    """Options as plain words get ids; yes_no becomes a choice; a fourth question goes."""
    if not isinstance(tree, dict):
        return tree
    key = next((k for k in tree if squash(k) == "questions"), "questions")
    if isinstance(tree.get(key), list) and len(tree[key]) > 3:
        notes.dropped("more than three questions in a batch", f"{len(tree[key]) - 3} left out")
        tree = tree | {key: tree[key][:3]}
    for row in rows(tree, key):
        prepare_asked(row, notes)
    return tree


def prepare_asked(row: dict[str, Tree], notes: Notes) -> None:
    kind_key = next((k for k in row if squash(k) in ("answertype", "type", "questiontype")), "answer_type")
    options_key = next((k for k in row if squash(k) in ("options", "choices")), "options")
    kind = squash(str(row.get(kind_key)))
    if kind in ("yesno", "boolean"):
        row[kind_key] = "single_choice"
        row[options_key] = [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]
        return
    if kind in ("freetext", "text") and row.get(options_key):
        notes.dropped("options of a free-text question", str(row.get("id")))
        row[options_key] = []
    options = row.get(options_key)
    if isinstance(options, list) and all(isinstance(option, str) for option in options):
        row[options_key] = [{"id": f"opt{n}", "label": label} for n, label in enumerate(options, 1)]
        if options:
            notes.synthesized("options numbered", str(row.get("id")))


def _turn_sources(tree: Tree, context: Context, notes: Notes) -> Tree:
    """Where a question comes from is Beadmill's to say."""
    compiled = set(names(context, "compiled_ids") or ())
    final = str(tree.get("is_final_free_form")).lower() == "true"
    for row in rows(tree, "questions"):
        if {"source", "round"} & row.keys():
            notes.cleaned("keys that Beadmill fills itself ignored", f"{row.get('id')}: source, round")
            row.pop("round", None)
        known = row.get("id") in compiled or context.get("compiled_ids") is None
        row["source"] = "final_free_form" if final else "compiled" if known else "prompt_follow_up"
    return tree


def _check_turn(turn: Turn, context: Context, _notes: Notes) -> Turn:
    if turn.complete:
        return Turn(complete=True, ai_commentary=turn.ai_commentary)
    if not turn.questions:
        raise Unfit("questions: a batch has one to three questions; end with INTERVIEW_COMPLETE when nothing is left")
    answered = set(names(context, "answered_ids") or ())
    ids = [q.id for q in turn.questions]
    wrong = [f"{one}: the id is there twice" for one in twice(ids)]
    wrong += [f"{one}: already answered, its id cannot be used again" for one in ids if one in answered]
    for q in turn.questions:
        wrong += wrong_options(q.id, q.answer_type, [o.id for o in q.options])
        wrong += [] if q.question.strip() else [f"{q.id}: the question is empty"]
    left = count(context, "follow_ups_left")
    extra = [q.id for q in turn.questions if q.source == "prompt_follow_up"]
    if left is not None and len(extra) > left:
        wrong.append(f"{', '.join(extra)}: only {left} follow-up questions are left")
    need(wrong)
    return turn


def wrong_options(name: str, answer_type: str, ids: list[str]) -> list[str]:
    """single_choice 2-10, multiple_choice 2-15, ids different (reference §3.2)."""
    if answer_type == "free_text":
        return []
    most = 10 if answer_type == "single_choice" else 15
    out = [] if 2 <= len(ids) <= most else [f"{name}: {answer_type} needs 2 to {most} options, not {len(ids)}"]
    return out + [f"{name}: the option id {one!r} is there twice" for one in twice(ids)]


TURN: Shape[Turn] = Shape(
    "turn",
    Turn,
    tag="INTERVIEW_BATCH",
    aliases=QUESTION_ALIASES,
    prepare=_prepare_turn,
    normalise=_turn_sources,
    check=_check_turn,
    end_tag="INTERVIEW_COMPLETE",
    finish=lambda: Turn(complete=True),
    rules=(
        "One to three questions; answer_type is yes_no, single_choice, multiple_choice or free_text.",
        "options only for single_choice (2 to 10) and multiple_choice (2 to 15).",
        "When nothing is left to ask, answer only <INTERVIEW_COMPLETE></INTERVIEW_COMPLETE>.",
    ),
    context={
        "compiled_ids": "collection of str: ids of the compiled list; other ids are follow-ups",
        "answered_ids": "collection of str: ids that may not be used again",
        "follow_ups_left": "int: how many follow-ups may still be asked",
    },
    example="""
batch_number: 1
progress:
  current: 1
  total: 6
is_final_free_form: false
ai_commentary: First the people who use it.
questions:
  - id: Q01
    question: Who will use the export?
    phase: Foundation
    priority: critical
    rationale: It decides the format.
    answer_type: single_choice
    options:
      - id: staff
        label: Staff only
      - id: customers
        label: Customers
""",
)


def _from_interview(tree: Tree, context: Context, notes: Notes) -> Tree:
    """A whole interview sent back: the answers of the skipped questions are taken out of it."""
    if not isinstance(tree, dict) or any(squash(k) == "answers" for k in tree):
        return tree
    interview = given(context, "interview", Interview)
    skipped = {q.id for q in interview.questions if q.answer.skipped} if interview else None
    questions = [row for row in rows(tree, "questions") if skipped is None or row.get("id") in skipped]
    if not questions:
        return tree
    notes.cleaned("answers of the skipped questions taken out of a whole interview")
    return {
        "answers": [
            {"id": row.get("id"), **row["answer"]} for row in questions if isinstance(row.get("answer"), Mapping)
        ]
    }


def _drop_answer_extras(tree: Tree, context: Context, notes: Notes) -> Tree:
    """Option labels become option ids."""
    interview = given(context, "interview", Interview)
    questions = {q.id: q for q in interview.questions} if interview else {}
    for row in rows(tree, "answers"):
        question = questions.get(str(row.get("id")))
        chosen = row.get("selected_option_ids")
        if question and isinstance(chosen, list):
            row["selected_option_ids"] = [_option_id(question, str(one), notes) for one in chosen]
    return tree


def _option_id(question: InterviewQuestion, word: str, notes: Notes) -> str:
    if any(option.id == word for option in question.options):
        return word
    same = [o.id for o in question.options if squash(word) in (squash(o.label), squash(o.id))]
    if len(same) == 1:
        notes.cleaned("option label turned into its id", f"{question.id}: {word} → {same[0]}")
        return same[0]
    return word


def _check_filled(value: FilledAnswers, context: Context, notes: Notes) -> FilledAnswers:
    """Exactly the skipped questions, each with text or a known option."""
    ids = [answer.id for answer in value.answers]
    wrong = [f"{one}: answered twice" for one in twice(ids)]
    wrong += [
        f"{a.id}: the answer is empty" for a in value.answers if not (a.free_text.strip() or a.selected_option_ids)
    ]
    interview = given(context, "interview", Interview)
    if interview is None:
        need(wrong)
        return value
    questions = {q.id: q for q in interview.questions}
    wrong += [f"{q.id}: the answer is missing" for q in interview.questions if q.answer.skipped and q.id not in ids]
    wrong += [f"{one}: no such question" for one in ids if one not in questions]
    kept: list[FilledAnswer] = []
    for answer in value.answers:
        question = questions.get(answer.id)
        if question and not question.answer.skipped:
            notes.dropped("answer to a question that a person has answered", answer.id)
        elif question:
            wrong += _wrong_choice(question, answer)
            kept.append(answer)
    need(wrong)
    return FilledAnswers(answers=tuple(kept))


def _wrong_choice(question: InterviewQuestion, answer: FilledAnswer) -> list[str]:
    known = {option.id for option in question.options}
    out = [f"{question.id}: no such option: {one}" for one in answer.selected_option_ids if one not in known]
    if question.answer_type == "single_choice" and len(answer.selected_option_ids) > 1:
        out.append(f"{question.id}: only one option may be chosen")
    return out


FILLED_ANSWERS: Shape[FilledAnswers] = Shape(
    "filled_answers",
    FilledAnswers,
    aliases={
        "free_text": ("answer", "text", "response"),
        "selected_option_ids": ("options", "selected_options", "selected", "option_ids"),
        "id": ("question_id",),
    },
    prepare=_from_interview,
    normalise=_drop_answer_extras,
    check=_check_filled,
    root="answers",
    rules=("One entry for each skipped question and no other; free_text, selected_option_ids, or both.",),
    context={"interview": "Interview: whose skipped questions are answered"},
    example="""
answers:
  - id: Q04
    selected_option_ids: [csv]
    free_text: CSV, since the ticket names a spreadsheet.
""",
)
