"""BEAD_STATUS: the coder's marker at the end of an iteration (reference §8.1)."""

from __future__ import annotations

from beadmill.artifacts.beads import BeadStatus
from beadmill.artifacts.reading.ask import given, need
from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.shape import Context, Shape
from beadmill.artifacts.reading.tree import Tree, Unfit

_PASS = frozenset({"pass", "passed", "ok", "success", "complete", "true", "1"})
_FAIL = frozenset({"fail", "failed", "error", "timeout", "notrun", "skipped", "pending", "false", "0"})
_STATUS = {"completed": "done", "complete": "done", "success": "done", "failed": "error", "blocked": "error"}
CHECKS = ("tests", "lint", "typecheck", "qualitative")


def _status_words(tree: Tree, _context: Context, notes: Notes) -> Tree:
    if not isinstance(tree, dict):
        return tree
    status = squash(str(tree.get("status")))
    if status in _STATUS:
        notes.cleaned("status word in the wanted spelling", f"{tree['status']} → {_STATUS[status]}")
        tree["status"] = _STATUS[status]
    checks = tree.get("checks")
    if isinstance(checks, dict):
        tree["checks"] = _checks(checks, notes)
    return tree


def _checks(written: dict[str, Tree], notes: Notes) -> dict[str, Tree]:
    out: dict[str, Tree] = {}
    for key, value in written.items():
        word = _check_word(key, value, notes)
        if out.setdefault(squash(key), word) != word:
            raise Unfit(f"checks.{squash(key)}: said twice, pass and fail")
    return out


def _check_word(key: str, value: Tree, notes: Notes) -> Tree:
    word = squash(str(value))
    wanted = "pass" if word in _PASS else "fail" if word in _FAIL else None
    if wanted and wanted != value:
        notes.cleaned("check word in the wanted spelling", f"{key}: {value} → {wanted}")
    return wanted or value


def _check_status(value: BeadStatus, context: Context, _notes: Notes) -> BeadStatus:
    """The marker is about this bead; done names all four checks; a question has a text."""
    bead = given(context, "bead_id", str)
    wrong = []
    if bead is not None and value.bead_id != bead:
        wrong.append(f"bead_id: this is about {bead!r}, not {value.bead_id!r}")
    if value.status == "done":
        wrong += [f"checks.{name}: missing" for name in CHECKS if name not in value.checks]
    if value.status == "question" and not value.question.strip():
        wrong.append("question: empty")
    if value.status == "error" and not value.reason.strip():
        wrong.append("reason: an error needs one")
    need(wrong)
    return value


BEAD_STATUS: Shape[BeadStatus] = Shape(
    "bead_status",
    BeadStatus,
    tag="BEAD_STATUS",
    marker=True,
    form="json",
    aliases={"bead_id": ("bead", "id"), "checks": ("check",), "replaced_commands": ("replacements",)},
    normalise=_status_words,
    check=_check_status,
    rules=(
        "status is done, error (with reason) or question (with question).",
        "Each check is pass or fail; a check that was not run is fail.",
        "interfaces: what later beads may rely on. replaced_commands: only for a frozen command that is wrong, with original, replacement, reason.",
    ),
    context={"bead_id": "str: the bead that was worked on"},
    example="""
{"bead_id": "write-rows", "status": "done",
 "checks": {"tests": "pass", "lint": "pass", "typecheck": "pass", "qualitative": "pass"},
 "reason": "", "question": "", "interfaces": ["write_rows(rows, path) -> None"], "replaced_commands": []}
""",
)
