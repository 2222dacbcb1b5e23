"""The gate of an interview batch: what the page shows and what a payload may be."""

from __future__ import annotations

from collections.abc import Sequence

from beadmill.artifacts.interview import Asked, Batch, InterviewSession
from beadmill.domain.values import ArtifactRef, GateKind, GateRequest, Json
from beadmill.nodes._session import REASON_KEPT, asked_by

ANSWER_KEPT = 50_000  # characters of one free answer


def batch_gate(session: InterviewSession, batch: Batch, ref: ArtifactRef, *, key: str) -> GateRequest:
    questions = asked_by(session, batch)
    earlier = [q for q in session.questions if q.id in session.answers]
    return GateRequest(
        kind=GateKind.INTERVIEW,
        title=f"{key}: {len(questions)} question{'s' if len(questions) > 1 else ''} about the ticket",
        choices=("answer", "skip_all", "edit") if earlier else ("answer", "skip_all"),
        shows=(ref,),
        form=form(questions, earlier),
        detail={
            "batch": batch.number,
            "source": batch.source,
            "questions": [q.model_dump(mode="json") for q in questions],
            "progress": batch.progress.model_dump(mode="json") if batch.progress else None,
            "commentary": batch.commentary,
            "is_final_free_form": batch.is_final_free_form,
            "earlier": [
                q.model_dump(mode="json") | {"answer": session.answers[q.id].model_dump(mode="json")} for q in earlier
            ],
        },
    )


def form(questions: Sequence[Asked], earlier: Sequence[Asked]) -> Json:
    """JSON Schema. ``answers`` is for this batch, ``edits`` for answers of earlier ones, ``reason`` goes with skip_all."""
    return {
        "type": "object",
        "properties": {
            "answers": _by_id(questions),
            "edits": _by_id(earlier),
            "reason": {"type": "string", "maxLength": REASON_KEPT},
        },
        "additionalProperties": False,
    }


def _by_id(questions: Sequence[Asked]) -> Json:
    return {"type": "object", "properties": {q.id: _one(q) for q in questions}, "additionalProperties": False}


def _one(question: Asked) -> Json:
    properties: dict[str, Json] = {
        "free_text": {"type": "string", "maxLength": ANSWER_KEPT},
        "skipped": {"type": "boolean"},
        "skip_reason": {"type": "string", "maxLength": REASON_KEPT},
    }
    if question.options:
        chosen: dict[str, Json] = {"type": "array", "items": {"enum": [o.id for o in question.options]}}
        if question.answer_type == "single_choice":
            chosen["maxItems"] = 1
        properties["selected_option_ids"] = chosen
    return {"type": "object", "properties": properties, "additionalProperties": False}
