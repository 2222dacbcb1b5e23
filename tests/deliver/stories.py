"""Stories that a daemon can be killed in. Together they reach every built-in node and every kind of way back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final

Gate = Mapping[str, Any]
SEATS: Final = ("alpha", "beta", "gamma")


@dataclass(frozen=True, slots=True)
class Story:
    """``first`` are scripted replies before the demo's own. ``seats`` 1 = planning without a council."""

    name: str
    sop: str = "deliver"
    seats: int = 3
    overrides: Mapping[str, Any] = field(default_factory=dict)
    first: tuple[Mapping[str, Any], ...] = ()

    def settings(self, agent: str) -> dict[str, Any]:
        agents = cycle(agent.split(","))
        seats = [f"{next(agents)}/{model}" for model in SEATS[-self.seats :]]  # gamma alone carries the whole demo
        mode = {} if self.seats > 1 else {"mode": "solo", "interview_questions": 0}
        return {**self.overrides, "council": {"seats": seats, **mode}}

    def choose(self, gate: Gate) -> dict[str, Any] | None:
        """What this story answers; None leaves it to the demo's person."""
        node = gate["id"].partition("/")[2].partition("/")[0]
        match gate["kind"], node:
            case "question", _:
                return {"choice": "answer", "payload": {"answer": "Kelvin too."}}
            case "blocked", _:
                return {"choice": "retry"}
            case "approve", "review.1":
                return {"choice": "rejected", "note": "once more"}
            case "merge", "pull_request.1" if self.name == "ways":
                return {"choice": "request_changes", "note": "Say in the README who wrote it."}
            case "merge", _ if self.name == "ways":
                return {"choice": "close", "note": "not wanted any more"}
        return None


def _said(bead: str, **more: Any) -> str:
    checks = dict.fromkeys(("tests", "lint", "typecheck", "qualitative"), "pass")
    status = {"bead_id": bead, "status": "done", "checks": checks, "interfaces": [], **more}
    return f"<BEAD_STATUS>\n{json.dumps(status)}\n</BEAD_STATUS>\n"


def _mends(node: str) -> dict[str, Any]:
    """The bead that a way back to build has made."""
    bead = f"rework-{node}-1"
    edit = {"append": {"path": "README.md", "content": f"\nMended: {node}.\n"}}
    return {"match": {"template": "coding", "subject": f"^{bead} try"}, "steps": [edit, {"reply": _said(bead)}]}


REFUSED: Final = {
    "verdict": "request_changes",
    "summary": "The README is thin.",
    "findings": [{"severity": "major", "path": "README.md", "text": "It says too little."}],
}
WAYS: Final = (
    {  # a question in the middle of a turn, then a try that fails: the run blocks and is retried
        "match": {"template": "coding", "subject": "^temperature-scales try 1$", "turn": "1"},
        "steps": [{"write": {"path": "units/slip.py", "content": "x = 1\n"}}, {"ask": {"question": "Kelvin, too?"}}],
    },
    {
        "match": {"template": "review", "text": r"\A(?![\s\S]*rework-verify-1)"},
        "steps": [{"reply": json.dumps(REFUSED)}],
    },
    _mends("verify"),
    _mends("pull-request"),
)
DEMO: Final = Story("deliver")
HELLO: Final = Story("hello", sop="hello", seats=1)
OFF: Final = {"gates": {"interview": "off", "prd": "off"}}
WAYS_BACK: Final = Story("ways", seats=1, overrides={**OFF, "build": {"attempts": 1, "review": "fail"}}, first=WAYS)
STORIES: Final = {story.name: story for story in (HELLO, DEMO, WAYS_BACK)}
