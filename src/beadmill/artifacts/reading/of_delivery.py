"""RELEVANT_FILES, SETUP_PLAN, FINAL_TEST, REVIEW, CANDIDATE_AUDIT, PULL_REQUEST, NOTE (reference §6, §7.2, §9)."""

from __future__ import annotations

from beadmill.artifacts.delivery import FileAudit, FinalTestCommands, PullRequestText, Review
from beadmill.artifacts.reading.ask import count, names, need, outside, plain_paths, rows, twice
from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.replies import Audit, Text
from beadmill.artifacts.reading.shape import Context, Shape
from beadmill.artifacts.reading.tree import Tree, Unfit
from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import SetupPlan

MOST_FILES = 30
MOST_TEXT = 160_000  # characters of rationale and preview, all files together
_RANK = {"high": 0, "medium": 1, "low": 2}


def _file_words(tree: Tree, _context: Context, notes: Notes) -> Tree:
    """Unknown relevance is medium, unknown action is read: hints, not claims."""
    for row in rows(tree, "files"):
        plain_paths(row, ("path",), notes)
        for key, words, default in (
            ("relevance", ("high", "medium", "low"), "medium"),
            ("likely_action", ("read", "modify", "create"), "read"),
        ):
            if key in row and row[key] not in words:
                notes.cleaned(f"unknown {key} read as {default}", f"{row.get('path')}: {row[key]}")
                row[key] = default
    return tree


def _check_files(value: RelevantFiles, _context: Context, notes: Notes) -> RelevantFiles:
    """Most relevant first, each path once and inside the repository, 30 files and 160,000 characters at most."""
    if not value.files:
        raise Unfit("files: the list is empty")
    need([f"files: not a path inside the repository: {path}" for path in outside(f.path for f in value.files)])
    first = {f.path: f for f in reversed(value.files)}
    files = [f for f in value.files if first[f.path] is f]
    if len(files) < len(value.files):
        notes.dropped("file listed twice", f"{len(value.files) - len(files)} left out")
    files.sort(key=lambda f: _RANK[f.relevance])
    size, kept = 0, 0
    for f in files[:MOST_FILES]:
        size += len(f.rationale) + len(f.content_preview)
        if size > MOST_TEXT:
            break
        kept += 1
    if kept < len(files):
        notes.dropped("least relevant files over the limit", f"{len(files) - kept} left out")
    return value.model_copy(update={"files": tuple(files[:kept])})


RELEVANT_FILES: Shape[RelevantFiles] = Shape(
    "relevant_files",
    RelevantFiles,
    tag="RELEVANT_FILES_RESULT",
    aliases={
        "files": ("relevant_files",),
        "path": ("file", "file_path", "filename"),
        "rationale": ("reason", "why"),
        "likely_action": ("action",),
        "content_preview": ("preview", "signatures"),
    },
    normalise=_file_words,
    check=_check_files,
    root="files",
    owned=frozenset({"ticket_id", "base_commit"}),
    last_may_go=True,
    rules=(
        "5 to 25 files, most relevant first; paths relative to the repository.",
        "relevance is high, medium or low; likely_action is read, modify or create.",
        "content_preview: signatures only, 5 to 20 lines, as a block.",
    ),
    example="""
files:
  - path: src/app/export.py
    rationale: Holds the writer that the ticket extends.
    relevance: high
    likely_action: modify
    content_preview: |
      def write(rows):
          ...
""",
)


def _check_plan(value: SetupPlan, _context: Context, _notes: Notes) -> SetupPlan:
    """Ready without actions ⇔ no steps and no inputs; paths stay inside and off Git's own."""
    actions = bool(value.steps or value.workspace_inputs)
    wrong = []
    if value.readiness.actions_required != actions:
        wrong.append("readiness.actions_required: true exactly when there are steps or workspace_inputs")
    if value.readiness.status == "ready" and actions:
        wrong.append("readiness.status: ready means that no step and no input is needed")
    wrong += [
        f"workspace_inputs: not a path inside the repository: {p}"
        for p in outside(i.path for i in value.workspace_inputs)
    ]
    wrong += [f"steps: the id {one!r} is there twice" for one in twice([step.id for step in value.steps])]
    wrong += [
        f"workspace_probes: the id {one!r} is there twice" for one in twice([p.id for p in value.workspace_probes])
    ]
    need(wrong)
    return value


def _step_ids(tree: Tree, _context: Context, notes: Notes) -> Tree:
    for key, prefix in (("steps", "step"), ("workspace_probes", "probe")):
        for n, row in enumerate(rows(tree, key), 1):
            if not row.get("id"):
                row["id"] = f"{prefix}-{n}"
                notes.synthesized("id given by position", row["id"])
    return tree


SETUP_PLAN: Shape[SetupPlan] = Shape(
    "setup_plan",
    SetupPlan,
    tag="EXECUTION_SETUP_PLAN",
    aliases={"workspace_inputs": ("inputs",), "workspace_probes": ("probes",), "project_commands": ("commands_full",)},
    normalise=_step_ids,
    check=_check_plan,
    owned=frozenset(
        {
            "schema_version",
            "ticket_id",
            "artifact",
            "status",
            "host_context",
            "temp_roots",
            "git_hooks",
            "quality_gate_policy",
        }
    ),
    rules=(
        "readiness.status is ready, partial or missing; actions_required is true exactly when steps or workspace_inputs are listed.",
        "A command is {mode: process, program, args} or {mode: shell, script}; only commands seen in the repository.",
        "kind is file or directory; source_status is ignored or untracked; category is local_config, secret, fixture, dataset or other_non_reproducible.",
        "functional is false for a probe that only prints a version.",
    ),
    example="""
summary: Python project, dependencies are missing.
readiness:
  status: partial
  actions_required: true
  evidence:
    - pyproject.toml names pytest
  gaps:
    - pytest is not installed
workspace_inputs: []
workspace_probes:
  - id: tests-start
    command: {mode: process, program: .venv/bin/python, args: [-m, pytest, --collect-only, -q]}
    purpose: The tests can be collected
    functional: true
steps:
  - id: install
    title: Install dependencies
    purpose: The tests need pytest
    commands:
      - {mode: shell, script: "python -m venv .venv && .venv/bin/pip install -e ."}
    required: true
    rationale: Nothing is installed
    cautions: []
project_commands:
  prepare: []
  test_full:
    - {mode: process, program: .venv/bin/python, args: [-m, pytest]}
  lint_full: []
  typecheck_full: []
cautions: []
""",
)


def _final_paths(tree: Tree, _context: Context, notes: Notes) -> Tree:
    if isinstance(tree, dict):
        plain_paths(tree, ("test_files", "modified_files"), notes)
    for row in rows(tree, "file_effects"):
        plain_paths(row, ("path",), notes)
    return tree


def _check_final(value: FinalTestCommands, _context: Context, _notes: Notes) -> FinalTestCommands:
    paths = (*value.test_files, *value.modified_files, *(effect.path for effect in value.file_effects))
    need([f"not a path inside the repository: {path}" for path in outside(paths)])
    return value


FINAL_TEST: Shape[FinalTestCommands] = Shape(
    "final_test",
    FinalTestCommands,
    tag="FINAL_TEST_COMMANDS",
    form="json",
    aliases={
        "test_files": ("tests",),
        "modified_files": ("changed_files",),
        "file_effects": ("effects",),
        "tests_count": ("count", "test_count"),
    },
    normalise=_final_paths,
    check=_check_final,
    rules=(
        "At least one command, one test file and one modified file; paths relative to the repository.",
        "intent is candidate, temporary or unexpected.",
    ),
    example="""
{"commands": [{"mode": "process", "program": "python", "args": ["-m", "pytest", "tests/test_flow.py"]}],
 "test_files": ["tests/test_flow.py"], "modified_files": ["tests/test_flow.py"],
 "file_effects": [{"path": "tests/test_flow.py", "intent": "candidate", "reason": "new test"}],
 "summary": "One test over the whole export.", "tests_count": 1}
""",
)

_VERDICTS = {
    "approved": "approve",
    "accept": "approve",
    "lgtm": "approve",
    "changesrequested": "request_changes",
    "requestedchanges": "request_changes",
    "reject": "request_changes",
    "rejected": "request_changes",
}
_SEVERITIES = {"critical": "blocker", "high": "major", "medium": "minor", "low": "minor", "info": "note", "nit": "note"}


def _review_words(tree: Tree, _context: Context, notes: Notes) -> Tree:
    if isinstance(tree, dict):
        _replace(tree, "verdict", _VERDICTS, notes)
    for row in rows(tree, "findings"):
        _replace(row, "severity", _SEVERITIES, notes)
        if isinstance(row.get("line"), str) and not row["line"].strip().isdigit():
            first = row["line"].partition("-")[0].strip().lstrip("L")
            row["line"] = first if first.isdigit() else "0"
            notes.cleaned("line range read as its first line", row["line"])
    return tree


def _replace(row: dict[str, Tree], key: str, words: dict[str, str], notes: Notes) -> None:
    wanted = words.get(squash(str(row.get(key))))
    if wanted:
        notes.cleaned(f"{key} in the wanted spelling", f"{row[key]} → {wanted}")
        row[key] = wanted


def _check_review(value: Review, _context: Context, _notes: Notes) -> Review:
    """The verdict and the findings must say the same; only Beadmill may say unavailable."""
    blockers = [f for f in value.findings if f.severity == "blocker"]
    if value.verdict == "unavailable":
        raise Unfit("verdict: approve or request_changes")
    if value.verdict == "approve" and blockers:
        raise Unfit("verdict: approve beside a blocker; say which of the two holds")
    if value.verdict == "request_changes" and not value.findings:
        raise Unfit("findings: request_changes needs at least one")
    return value


REVIEW: Shape[Review] = Shape(
    "review",
    Review,
    tag="REVIEW_RESULT",
    form="json",
    aliases={
        "text": ("message", "description", "comment", "issue"),
        "path": ("file",),
        "verdict": ("decision",),
        "findings": ("issues", "comments"),
    },
    normalise=_review_words,
    check=_check_review,
    owned=frozenset({"reviewer"}),
    rules=(
        "verdict is approve or request_changes; severity is blocker, major, minor or note.",
        "line is the first line it is about, 0 when it is about none.",
    ),
    example="""
{"verdict": "request_changes", "summary": "One criterion is not met.",
 "findings": [{"severity": "major", "text": "An empty list writes no header.", "path": "export.py", "line": 12}]}
""",
)


def _audit_paths(tree: Tree, _context: Context, notes: Notes) -> Tree:
    for row in rows(tree, "files"):
        plain_paths(row, ("path",), notes)
    return tree


def _check_audit(value: Audit, context: Context, notes: Notes) -> tuple[FileAudit, ...]:
    """Only files that are in the candidate, each once. A file that is not named is the caller's to include."""
    need([f"{path}: listed twice" for path in twice([one.path for one in value.files])])
    paths = names(context, "paths")
    if paths is None:
        return value.files
    for one in value.files:
        if one.path not in paths:
            notes.dropped("file that is not in the candidate", one.path)
    return tuple(one for one in value.files if one.path in paths)


CANDIDATE_AUDIT: Shape[tuple[FileAudit, ...]] = Shape(
    "candidate_audit",
    Audit,
    aliases={"decision": ("verdict", "action"), "reason": ("rationale", "why"), "path": ("file",)},
    normalise=_audit_paths,
    check=_check_audit,
    root="files",
    rules=("Every file of the candidate once; decision is include, exclude or review.",),
    context={"paths": "collection of str: the candidate's files"},
    example="""
files:
  - path: export.py
    decision: include
    reason: The feature itself.
  - path: debug.log
    decision: exclude
    reason: Output of a run.
""",
)


def _check_text(value: PullRequestText, _context: Context, notes: Notes) -> PullRequestText:
    title = " ".join(value.title.split())
    if not title or not value.summary.strip():
        raise Unfit("title and summary must not be empty")
    if len(title) > 200:
        raise Unfit(f"title: {len(title)} characters are more than 200")
    if title != value.title:
        notes.cleaned("title on one line")
    return value.model_copy(update={"title": title})


PULL_REQUEST: Shape[PullRequestText] = Shape(
    "pull_request",
    PullRequestText,
    aliases={"what_changed": ("changes",), "follow_ups": ("followups", "next_steps"), "summary": ("description",)},
    check=_check_text,
    rules=("title: one line, at most 200 characters. Name no check that was not run.",),
    example="""
title: Export lists as CSV
summary: Lists can be saved as a CSV file.
why: The ticket asks for a format that spreadsheets open.
what_changed:
  - export.py writes rows
validation:
  - pytest tests/test_export.py
follow_ups: []
""",
)


def _check_note(value: Text, context: Context, notes: Notes) -> str:
    most = count(context, "limit") or 4000
    text = value.text.strip()
    lines = text.splitlines()
    if len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        notes.fixed("code fence removed")
        text = "\n".join(lines[1:-1]).strip()
    if len(text) > most:
        notes.cleaned("note cut", f"{len(text)} → {most} characters")
    return text[:most]


NOTE: Shape[str] = Shape(
    "note",
    Text,
    form="text",
    check=_check_note,
    context={"limit": "int: characters kept, 4000 when not given"},
    example="The import fails because export.py names a missing module. Do not rename it again.",
)
