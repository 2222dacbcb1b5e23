"""Stories that a daemon can be killed in. Together they reach every built-in node and every kind of way back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final

from beadmill.demo import material

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
    nodes: frozenset[str] = frozenset()  # only their names are crash points; empty = all

    def settings(self, agent: str) -> dict[str, Any]:
        agents = cycle(agent.split(","))
        seats = [f"{next(agents)}/{model}" for model in SEATS[-self.seats :]]  # gamma alone carries the whole demo
        mode = {} if self.seats > 1 else {"mode": "solo", "interview_questions": 0}
        return {**self.overrides, "council": {**self.overrides.get("council", {}), "seats": seats, **mode}}

    def choose(self, gate: Gate) -> dict[str, Any] | None:
        """What this story answers; None leaves it to the demo's person."""
        node, _, name = gate["id"].partition("/")[2].partition("#")[0].partition("/")
        if self.name == "planning" and (said := PLANNED.get(f"{node}/{name}")) is not None:
            return dict(said)
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


# --- planning with everything in it -------------------------------------------------------------------------------
PLANNED: Final[Mapping[str, Mapping[str, Any]]] = {
    "interview.1/batch-2": {  # a follow-up is skipped, and an earlier answer edited
        "choice": "answer",
        "payload": {
            "answers": {"FU1": {"skipped": True, "skip_reason": "Later."}},
            "edits": {"Q02": {"selected_option_ids": ["yes"], "free_text": "Name the bad line by its number."}},
        },
    },
    "interview.1/batch-4": {"choice": "answer", "payload": {"answers": {"CFU1": {"free_text": "It is left out."}}}},
    "prd.1/approve-1": {"choice": "fix_gaps"},
}
FOLLOW_UP: Final = """<INTERVIEW_BATCH>
batch_number: 2
ai_commentary: One thing that the answers bring up.
questions:
  - {id: FU1, question: Which encoding do the files have?, phase: Structure, answer_type: free_text}
</INTERVIEW_BATCH>"""
ASKS_MORE: Final = """status: gaps
gaps:
  - Nothing says what a line without a value means.
follow_up_questions:
  - {id: CFU1, question: What does a line without a value mean?, phase: Structure, answer_type: free_text}
"""
FILLED: Final = """answers:
  - {id: Q03, selected_option_ids: [], free_text: As the convert command prints it.}
  - {id: FU1, selected_option_ids: [], free_text: UTF-8.}
"""
BEADS_GAP: Final = "status: gaps\ngaps:\n  - No bead says who reads the file.\nfollow_up_questions: []\n"
COVERED: Final = """gap_resolutions:
  - gap: No bead says who reads the file.
    action: already_covered
    rationale: The second bead reads it.
    affected_items: []
"""


def _says(template: str, text: str, **match: str) -> dict[str, Any]:
    return {"match": {"template": template, **match}, "steps": [{"reply": text}]}


def _text(name: str) -> str:
    """A file of the demo's scenario."""
    return (material.SCENARIO / name).read_text(encoding="utf-8")


def _everything() -> tuple[dict[str, Any], ...]:
    """The demo's own replies, but for a follow-up, a question of the check, and gaps at every turn."""
    once_more = _text("prd/revised.yaml").replace("one line on stderr", "one line on stderr, and names its cause")
    return (
        _says("interview_turn", FOLLOW_UP, turn="2"),
        _says("interview_turn", _text("interview/turn-2.yaml").replace("batch_number: 2", "batch_number: 3"), turn="3"),
        _says("interview_coverage", ASKS_MORE, turn="1"),
        _says("full_answers", FILLED),
        _says("prd_coverage", _text("prd/coverage-gap.yaml"), subject="^pass"),
        _says("prd_revise", once_more, subject="^revision 2$"),
        _says("beads_coverage", BEADS_GAP, turn="1"),
        _says("beads_revise", _text("beads/refined.yaml") + COVERED),
    )


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
PLANNING: Final = Story(
    "planning",
    overrides={"council": {"prd_passes": 2}},
    first=_everything(),
    nodes=frozenset({"scan", "interview", "prd", "beads"}),
)
STORIES: Final = {story.name: story for story in (HELLO, DEMO, WAYS_BACK, PLANNING)}
