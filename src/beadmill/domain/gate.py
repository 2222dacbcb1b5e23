"""What an answer to a gate must name (exactly the bytes the person saw), and when policy answers instead of a person."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from beadmill.domain.values import ArtifactRef, GateRequest

CLEAN = "no gaps, no undecided contradictions, no warnings, within budget"


def etag(gate_id: str, shows: Sequence[ArtifactRef]) -> str:
    """64 hex digits over the gate's id and the sorted (kind, row, sha256) it shows. The order of ``shows`` is free."""
    bound = sorted((ref.kind, ref.row, ref.sha256) for ref in shows)
    text = json.dumps([gate_id, bound], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def automatic(gate: GateRequest, policy: str, yes: str, held: Sequence[str], *, never: bool = False) -> GateRequest:
    """The request with the choice that ``policy`` (required, auto_when_clean, off) makes and why, or with why a person
    is asked. ``held`` says what is not clean; ``never`` that even off needs a person."""
    if policy == "required" or never:
        return gate
    if policy == "off":
        return replace(gate, auto=yes, why=f"off: {'; '.join(held)}" if held else "off")
    if held:
        return replace(gate, detail={**(gate.detail or {}), "asked_because": list(held)})
    return replace(gate, auto=yes, why=f"auto_when_clean: {CLEAN}", in_budget=True)


def counted(number: int, what: str) -> str:
    """``2 gaps``, ``1 gap``; "" for none."""
    return f"{number} {what}{'' if number == 1 else 's'}" if number else ""
