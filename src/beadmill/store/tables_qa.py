"""Manual QA: files that people added, and tickets that a round made."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, String
from sqlalchemy.types import JSON

from beadmill.store.tables_base import table

qa_evidence = table(
    "qa_evidence",
    Column("id", String, primary_key=True),
    Column("ticket", String, nullable=False),  # key: a copy belongs to the ticket that an improvement became
    Column("visit_id", String, ForeignKey("visits.id")),  # none for a copy
    Column("item", String, nullable=False, default=""),
    Column("name", String, nullable=False),
    Column("media", String, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", String, nullable=False),  # the file below <home>/evidence
    Column("author", String, nullable=False),
    Column("created", String, nullable=False),
    Column("removed", String),
    Column("copied_from", String),
)
Index("qa_evidence_visit", qa_evidence.c.visit_id)
Index("qa_evidence_ticket", qa_evidence.c.ticket)
Index("qa_evidence_sha256", qa_evidence.c.sha256)
qa_improvements = table(
    "qa_improvements",
    Column("key", String, primary_key=True),  # the durable key of the step that makes the ticket
    Column("ticket", String, nullable=False, unique=True),
    Column("visit_id", String, ForeignKey("visits.id"), nullable=False),
    Column("item", String, nullable=False),
    Column("origin", JSON, nullable=False),  # ticket, version, item, hashes
    Column("created", String, nullable=False),
)
