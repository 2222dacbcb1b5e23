"""The demo's ticket cut to two beads and no failed try: the size of ticket that the figures of other systems are for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from beadmill.demo import material

if TYPE_CHECKING:
    from collections.abc import Callable

GONE, INTO = "batch-command", "batch-reader"  # the first is built as a part of the second


def scenario() -> dict[str, Any]:
    replies = [r for r in material.scenario()["replies"] if not _is(r, "coding", "^temperature-scales try 1$")]
    commands = next(r for r in replies if _is(r, "coding", f"^{GONE} try "))
    for reply in replies:
        if _is(reply, "coding", f"^{INTO} try "):
            reply["steps"][-1:-1] = commands["steps"][:-1]
        elif _is(reply, "beads_refine"):
            _rewrite(reply, _refined)
        elif _is(reply, "beads_expand"):
            _rewrite(reply, _expanded)
    return {"replies": [r for r in replies if r is not commands]}


def _is(reply: dict[str, Any], template: str, subject: str = "") -> bool:
    match = reply["match"]
    return match.get("template") == template and (not subject or match.get("subject") == subject)


def _rewrite(reply: dict[str, Any], how: Callable[[str], str]) -> None:
    reply["steps"] = [{"reply": how(step["reply"])} for step in reply["steps"]]


def _refined(text: str) -> str:
    """JSON is YAML too."""
    document = YAML(typ="safe").load(text)
    beads = [_merged(bead) for bead in document["beads"] if bead["id"] != GONE]
    changes = [change for change in document.get("changes") or [] if change.get("id") != GONE]
    return json.dumps({**document, "beads": beads, "changes": changes})


def _expanded(text: str) -> str:
    rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    return "\n".join(json.dumps(_merged(row)) for row in rows if row["id"] != GONE) + "\n"


def _merged(bead: dict[str, Any]) -> dict[str, Any]:
    more = ["US-2-2"] if bead["id"] == INTO else []
    made = {**bead, "prdRefs": [*bead["prdRefs"], *more]}
    for name in ("blocked_by", "blocks"):
        if name in bead.get("dependencies", {}):
            kept = [other for other in bead["dependencies"][name] if other != GONE]
            made["dependencies"] = {**made["dependencies"], name: kept}
    return made
