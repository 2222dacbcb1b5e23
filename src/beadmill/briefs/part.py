"""PartText: one allow-listed part of a brief, with its text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from beadmill.domain.values import Part, Sha, estimate_tokens


@dataclass(frozen=True, slots=True)
class PartText:
    """One allow-listed part with its text. Several of one name (drafts) are shown under one title, in order."""

    name: str
    text: str
    version: int = 0

    def line(self, *, dropped: bool = False) -> Part:
        return Part(self.name, sha_of(self.text), estimate_tokens(self.text), self.version, dropped)


def sha_of(text: str) -> Sha:
    return Sha(hashlib.sha256(text.encode()).hexdigest())
