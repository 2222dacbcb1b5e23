"""What models see of a document: nothing that is absent anyway, and read back the same document."""

from __future__ import annotations

from typing import Any

import pytest

from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Bead, Beads, Blueprint, BlueprintBead
from beadmill.artifacts.interview import Answer, Interview, InterviewQuestion, Option
from beadmill.artifacts.lean import lean, lean_yaml
from beadmill.artifacts.prd import Epic, Prd, Product, Scope, Story, Verification
from beadmill.artifacts.reading import read, shapes
from beadmill.artifacts.relevant_files import RelevantFile, RelevantFiles
from beadmill.artifacts.setup import Probe, Readiness, SetupPlan
from beadmill.artifacts.yaml import from_yaml, to_yaml
from beadmill.domain.command import CommandSpec

PYTEST = CommandSpec(program="python", args=("-m", "pytest"))
SHELL = CommandSpec(mode="shell", script="make | tee log", cwd="sub", env={"A": "1"}, timeout_ms=1000)
STORY = Story(
    id="US-1-1",
    title="Save",
    acceptance_criteria=("It saves",),
    verification=Verification(required_commands=(PYTEST, SHELL)),
)
PRD = Prd(
    product=Product(problem_statement="Lists stay."),
    scope=Scope(in_scope=("CSV",)),
    epics=(Epic(id="EPIC-1", title="Out", user_stories=(STORY,)),),
)
PLAN = BlueprintBead(
    id="rows", title="Rows", prd_refs=("US-1-1",), acceptance_criteria=("One",), tests=("Two",), test_commands=(PYTEST,)
)
BEAD = Bead(**PLAN.model_dump(by_alias=False), priority=2, target_files=("a.py",))
QUESTION = InterviewQuestion(
    id="Q01", phase="Foundation", prompt="Who?", answer_type="single_choice", options=(Option(id="a", label="Ann"),),
    answer=Answer(selected_option_ids=("a",), answered_by="user_skip", skipped=True),
)  # fmt: skip
DOCUMENTS: tuple[Document, ...] = (
    PRD,
    Blueprint(beads=(PLAN,)),
    Beads(beads=(BEAD,)),
    Interview(ticket_id="DEMO-1", questions=(QUESTION,)),
    RelevantFiles(files=(RelevantFile(path="a.py", content_preview="x = 1\n"),)),
    SetupPlan(
        readiness=Readiness(status="ready", actions_required=False), workspace_probes=(Probe(id="p", command=PYTEST),)
    ),
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.kind)
def test_a_lean_document_is_shorter_and_reads_back_as_the_same(document: Document) -> None:
    assert from_yaml(document.kind, lean_yaml(document)) == document
    assert len(lean_yaml(document)) < len(to_yaml(document))


@pytest.mark.parametrize(
    ("shape", "document"), [(shapes.PRD, PRD), (shapes.BLUEPRINT, DOCUMENTS[1]), (shapes.SETUP_PLAN, DOCUMENTS[-1])]
)
def test_a_model_that_answers_in_the_lean_spelling_is_understood(shape: Any, document: Document) -> None:
    reading = read(shape, lean_yaml(document))
    assert (reading.value, reading.error) == (document, "")


def test_a_command_shows_what_is_its_own() -> None:
    shown = lean(STORY)["verification"]["required_commands"]
    assert shown == [
        {"program": "python", "args": ["-m", "pytest"]},
        {"mode": "shell", "script": "make | tee log", "cwd": "sub", "env": {"A": "1"}, "timeoutMs": 1000},
    ]


def test_words_that_say_something_stay_though_they_are_the_default() -> None:
    assert lean(RelevantFile(path="a.py")) == {"path": "a.py", "relevance": "medium", "likely_action": "read"}


def test_what_must_be_written_stays_though_it_is_empty() -> None:
    assert lean(Readiness(status="ready", actions_required=False)) == {"status": "ready", "actions_required": False}


def test_keys_are_spelt_as_in_the_document() -> None:
    assert list(lean(PLAN)) == ["id", "title", "prdRefs", "acceptanceCriteria", "tests", "testCommands"]


def test_a_field_can_be_left_out() -> None:
    assert list(lean(PLAN, exclude=frozenset({"tests", "prd_refs"}))) == [
        "id",
        "title",
        "acceptanceCriteria",
        "testCommands",
    ]
