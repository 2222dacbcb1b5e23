"""What an answer to a gate must name: exactly the bytes the person saw."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from beadmill.domain.values import ArtifactRef


def etag(gate_id: str, shows: Sequence[ArtifactRef]) -> str:
    """64 hex digits over the gate's id and the sorted (kind, row, sha256) it shows. The order of ``shows`` is free."""
    bound = sorted((ref.kind, ref.row, ref.sha256) for ref in shows)
    text = json.dumps([gate_id, bound], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
