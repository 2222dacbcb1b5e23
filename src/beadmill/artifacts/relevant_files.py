"""What the scan found (reference §6)."""

from __future__ import annotations

from typing import ClassVar, Literal

from beadmill.artifacts.base import Document, Record


class RelevantFile(Record):
    path: str
    rationale: str = ""
    relevance: Literal["high", "medium", "low"] = "medium"
    likely_action: Literal["read", "modify", "create"] = "read"
    content_preview: str = ""


class RelevantFiles(Document):
    kind: ClassVar[str] = "relevant_files"

    ticket_id: str = ""
    files: tuple[RelevantFile, ...] = ()
    base_commit: str = ""
