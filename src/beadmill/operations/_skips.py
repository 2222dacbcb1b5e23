"""Skips of interview questions and of manual QA as receipts: who, when, why, and what later took their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.artifacts.interview import Answer, Interview, InterviewSession
from beadmill.artifacts.qa import QaRound
from beadmill.domain.values import SYSTEM, GateKind, VisitRef
from beadmill.operations import views
from beadmill.store import blobs
from beadmill.store import tables as t
from beadmill.store.journal import qa as books

d, g = t.decisions.c, t.gates.c


@dataclass
class _Visit:
    """The questions of one interview as they were answered one after the other. ``standing``: question → its last skip."""

    run: str
    visit: str
    lines: list[dict[str, Any]] = field(default_factory=list)
    standing: dict[str, dict[str, Any]] = field(default_factory=dict)

    def said(self, question: str, at: str, by: str, reason: str | None, **more: Any) -> None:
        """``reason`` None = it was answered. Whatever stood before is superseded, never taken away."""
        before = self.standing.pop(question, None)
        if before is not None:
            before |= {"superseded_at": at, "superseded_by": by}
        if reason is not None:
            self.standing[question] = self.add(at, by, reason, question=question, **more)

    def add(self, at: str, by: str, reason: str, **more: Any) -> dict[str, Any]:
        gate, door = more.pop("gate", None), more.pop("door", "")
        line = {"at": at, "by": by, "reason": reason, "gate": gate, "door": door, "details": more}
        self.lines.append(line)
        return line


def skips(conn: Connection, run: str) -> list[views.TrailLine]:
    visits: dict[str, _Visit] = {}
    for at, visit, act in sorted(_acts(conn, run), key=lambda one: (one[0], one[1])):
        act(visits.setdefault(visit, _Visit(run, visit)), at)
    found = [(one.visit, line) for one in visits.values() for line in one.lines] + list(_by_hand(conn, run))
    return [views.TrailLine(kind="skip", run=run, node=VisitRef.parse(visit).node, **line) for visit, line in found]


def _by_hand(conn: Connection, run: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Items of manual QA that a person let through, and rounds that they skipped."""
    for row, one in books.documents(conn, run, QaRound):
        said = {"at": row.created, "by": one.by}
        for waived in one.waivers:
            details = {"surface": "manual_qa_item", "question": waived.item, "prompt": waived.title}
            yield row.visit, {**said, "reason": waived.reason, "details": details}
        if one.outcome == "skipped":
            details = {"surface": "manual_qa", "question": f"v{one.version}", "prompt": "Manual QA"}
            yield row.visit, {**said, "reason": one.reason, "details": details}


def _acts(conn: Connection, run: str) -> Iterator[tuple[str, str, Any]]:
    """When, in which visit, and what it does to the questions."""
    columns = (g.id, g.visit_id, g.detail, d.choice, d.payload, d.note, d.saw, d.actor, d.door, d.at)
    query = sa.select(*columns).join(t.decisions, d.gate_id == g.id)
    for row in conn.execute(query.where(g.run_id == run, g.kind == GateKind.INTERVIEW)):
        session = _session(conn, row.saw) if row.choice == "skip_all" else None
        yield row.at, row.visit_id, _Batch(row, session)
    for saved in blobs.listed(conn, run, Interview.kind):
        document = Interview.parse(blobs.get_blob(conn, saved.ref.sha256))
        parent = blobs.artifact(conn, saved.parent) if saved.parent is not None else None
        if parent is None and saved.author == str(SYSTEM):
            yield saved.created, saved.visit, _Silent(document)
        elif parent is not None and parent.ref.kind == Interview.kind and saved.author.startswith("user:"):
            before = Interview.parse(blobs.get_blob(conn, parent.ref.sha256))
            yield saved.created, saved.visit, _Edited(before, document, saved.author)


def _session(conn: Connection, saw: list[list[Any]]) -> InterviewSession | None:
    shas = [sha for kind, _row, sha in saw if kind == InterviewSession.kind]
    return InterviewSession.parse(blobs.get_blob(conn, shas[0])) if shas else None


@dataclass(frozen=True)
class _Batch:
    """One answered batch: what was left blank is skipped, what was edited earlier counts anew."""

    row: Any
    session: InterviewSession | None

    def __call__(self, to: _Visit, at: str) -> None:
        row = self.row
        payload: Mapping[str, Any] = row.payload if isinstance(row.payload, dict) else {}
        bulk = row.choice == "skip_all"
        reason = str(payload.get("reason") or row.note) if bulk else ""
        surface = "interview_all" if bulk else "interview_question"
        more = {"gate": row.id, "door": row.door, "surface": surface}
        if bulk:
            to.add(at, row.actor, reason, summary=True, **more)
        prompts = {q["id"]: q["question"] for q in (*row.detail["questions"], *row.detail.get("earlier", ()))}
        given: Mapping[str, Any] = payload.get("answers") or {}
        said = {q["id"]: given.get(q["id"]) or {} for q in row.detail["questions"]} | (payload.get("edits") or {})
        for question, one in said.items():
            to.said(question, at, row.actor, _reason(one, reason), prompt=prompts.get(question, ""), **more)
        for question, prompt in self._left(prompts):
            to.said(question, at, row.actor, reason, prompt=prompt, **more)

    def _left(self, asked: Mapping[str, str]) -> list[tuple[str, str]]:
        """Of a skip of everything: the compiled questions that nobody asked."""
        if self.session is None or self.session.complete:
            return []
        known = {*asked, *(q.id for q in self.session.questions)}
        return [(q.id, q.question) for q in self.session.compiled if q.id not in known]


def _reason(answer: Any, bulk: str) -> str | None:
    """None when it was answered."""
    if isinstance(answer, str):
        return None if answer.strip() else bulk
    one: Mapping[str, Any] = answer
    filled = str(one.get("free_text") or "").strip() or one.get("selected_option_ids")
    return None if filled and not one.get("skipped") else str(one.get("skip_reason") or bulk)


@dataclass(frozen=True)
class _Silent:
    """What the interviewer left out."""

    document: Interview

    def __call__(self, to: _Visit, at: str) -> None:
        for q in self.document.questions:
            if q.answer.answered_by == "ai_skip":
                reason = q.answer.skip_reason or ""
                to.said(q.id, at, str(SYSTEM), reason, prompt=q.prompt, surface="interview_question")


@dataclass(frozen=True)
class _Edited:
    """A person changed answers in the finished interview."""

    before: Interview
    after: Interview
    by: str

    def __call__(self, to: _Visit, at: str) -> None:
        old = {q.id: q.answer for q in self.before.questions}
        for q in self.after.questions:
            was = old.get(q.id, Answer())
            if was == q.answer or not (was.skipped or q.answer.skipped):
                continue
            reason = (q.answer.skip_reason or "") if q.answer.skipped else None
            to.said(q.id, at, self.by, reason, prompt=q.prompt, surface="interview_approval_mark_skipped")
