"""Which fields of a document a person edits in a form, in the order of the form. What is not named here is kept as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["line", "text", "lines", "choice", "group", "items", "commands", "answer", "after"]


@dataclass(frozen=True, slots=True)
class Field:
    """``key`` is the name in the document's JSON. ``fields`` are those of a group or of each item; ``one`` is what an
    item is called, empty = items can be neither added nor removed; ``title`` is the key that heads it."""

    key: str
    label: str
    kind: Kind = "line"
    hint: str = ""
    options: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    one: str = ""
    title: str = ""
    optional: bool = False  # empty is written as null


COMMAND = (
    Field("mode", "Runs", "choice", options=("process", "shell")),
    Field("line", "Command", "text", hint="a program with its arguments, quoted as in a shell; or a shell script"),
    Field("cwd", "In the folder", hint="of the repository"),
    Field("env", "Environment", "lines", hint="NAME=value, one a line"),
    Field("seconds", "At most, in seconds", hint="0.1 to 1800; empty = the usual"),
)


def _commands(key: str, label: str) -> Field:
    return Field(key, label, "commands", fields=COMMAND, one="command", title="line")


def _lines(key: str, label: str, hint: str = "") -> Field:
    return Field(key, label, "lines", hint=hint)


SUMMARY = (
    _lines("goals", "Goals"),
    _lines("constraints", "Constraints"),
    _lines("non_goals", "Not wanted"),
    Field("final_free_form_answer", "Anything else", "text"),
)
INTERVIEW = (
    Field("questions", "Answers", "items", fields=(Field("answer", "Answer", "answer"),), title="prompt"),
    Field("summary", "Summary", "group", fields=SUMMARY),
)

STORY = (
    Field("id", "Id"),
    Field("title", "Story", "text"),
    _lines("acceptance_criteria", "Acceptance criteria"),
    _lines("implementation_steps", "Steps"),
    Field("verification", "Checks", "group", fields=(_commands("required_commands", "Commands that must pass"),)),
)
EPIC = (
    Field("id", "Id"),
    Field("title", "Epic"),
    Field("objective", "Objective", "text"),
    _lines("implementation_steps", "Steps"),
    Field("user_stories", "Stories", "items", fields=STORY, one="story", title="title"),
)
TECHNICAL = (
    _lines("architecture_constraints", "Architecture"),
    _lines("data_model", "Data"),
    _lines("api_contracts", "Interfaces"),
    _lines("security_constraints", "Security"),
    _lines("performance_constraints", "Performance"),
    _lines("reliability_constraints", "Reliability"),
    _lines("error_handling_rules", "Errors"),
    _lines("tooling_assumptions", "Tools"),
)
PRODUCT = (Field("problem_statement", "Problem", "text"), _lines("target_users", "Users"))
SCOPE = (_lines("in_scope", "In scope"), _lines("out_of_scope", "Out of scope"))
PRD = (
    Field("product", "Product", "group", fields=PRODUCT),
    Field("scope", "Scope", "group", fields=SCOPE),
    Field("epics", "Epics", "items", fields=EPIC, one="epic", title="title"),
    Field("technical_requirements", "Technical requirements", "group", fields=TECHNICAL),
    _lines("risks", "Risks"),
)

GUIDANCE = (_lines("patterns", "Follow"), _lines("anti_patterns", "Avoid"))
BEAD = (
    Field("id", "Id", hint="lower-case letters, digits, dot, dash or underscore"),
    Field("title", "Title"),
    Field("description", "What to do", "text"),
    _lines("acceptanceCriteria", "Acceptance criteria"),
    _lines("tests", "Tests"),
    _commands("testCommands", "Commands that must pass"),
    Field("testCommandReason", "Why no command checks it", "text", hint="only without a command", optional=True),
    Field("dependencies", "Dependencies", "group", fields=(Field("blocked_by", "Comes after", "after"),)),
    _lines("targetFiles", "Files"),
    _lines("testFiles", "Test files"),
    _lines("interfaces", "What later beads may rely on"),
    Field("contextGuidance", "Guidance", "group", fields=GUIDANCE),
    _lines("prdRefs", "For", hint="ids of epics and stories"),
    Field("issueType", "Kind", hint="task, bug, chore …"),
    _lines("labels", "Labels"),
)
BEADS = (Field("beads", "Beads", "items", fields=BEAD, one="bead", title="title"),)

FORMS: Mapping[str, tuple[Field, ...]] = {"interview": INTERVIEW, "prd": PRD, "beads": BEADS}


def repeated(fields: tuple[Field, ...], path: str) -> Field | None:
    """The list that ``epics.n1.user_stories`` names; None when the form has none there."""
    key, _, rest = path.partition(".")
    found = next((f for f in fields if f.key == key), None)
    if found is None or not rest:
        return found if found is not None and found.one else None
    if found.kind == "group":
        return repeated(found.fields, rest)
    return repeated(found.fields, rest.partition(".")[2]) if found.kind in ("items", "commands") else None


def leaves(fields: tuple[Field, ...]) -> Iterator[Field]:
    for field in fields:
        yield field
        yield from leaves(field.fields)
