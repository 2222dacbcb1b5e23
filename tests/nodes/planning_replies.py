"""What the scripted seats say in the tests of the planning nodes."""

from __future__ import annotations

import re

from beadmill.artifacts.interview import Answer, Interview, InterviewQuestion
from beadmill.artifacts.prd import Prd
from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.shapes import PRD as PRD_SHAPE
from beadmill.artifacts.relevant_files import RelevantFile, RelevantFiles
from beadmill.artifacts.rubric import RUBRICS
from beadmill.artifacts.setup import ScanReport
from beadmill.processes.spec import AgentTask
from tests.nodes.fakes import Journal, header

QUESTIONS = """
questions:
  - {id: Q01, phase: Foundation, question: Who exports lists?}
  - {id: Q02, phase: Structure, question: Which columns?}
"""
REFINED_QUESTIONS = (
    QUESTIONS
    + """
changes: []
"""
)
BATCH = """<INTERVIEW_BATCH>
batch_number: 1
progress: {current: 1, total: 3}
is_final_free_form: false
ai_commentary: First the people.
questions:
  - id: Q01
    question: Who exports lists?
    phase: Foundation
    priority: critical
    rationale: It decides the format.
    answer_type: single_choice
    options:
      - {id: staff, label: Staff only}
      - {id: customers, label: Customers}
</INTERVIEW_BATCH>"""
SECOND = """<INTERVIEW_BATCH>
batch_number: 2
ai_commentary: Now the columns.
questions:
  - {id: Q02, question: Which columns?, phase: Structure, answer_type: free_text}
  - {id: FU1, question: Which separator?, phase: Structure, answer_type: free_text}
</INTERVIEW_BATCH>"""
COMPLETE = "<INTERVIEW_COMPLETE></INTERVIEW_COMPLETE>"
CLEAN = "status: clean\ngaps: []\nfollow_up_questions: []\n"
GAPS = "status: gaps\ngaps:\n  - Nothing says what an empty list gives.\nfollow_up_questions: []\n"
ASK_MORE = """
status: gaps
gaps:
  - Nothing says what an empty list gives.
follow_up_questions:
  - {id: CFU1, question: What should an empty list give?, phase: Assembly, answer_type: free_text}
"""
GAP = "Nothing says what an empty list gives."


def prd(marker: str = "plain", title: str = "Save a list as CSV") -> str:
    return f"""
product:
  problem_statement: Lists cannot leave the program ({marker}).
  target_users: [Staff]
scope:
  in_scope: [Export as CSV]
  out_of_scope: []
epics:
  - id: EPIC-1
    title: Export
    objective: Lists leave the program.
    implementation_steps: []
    user_stories:
      - id: US-1-1
        title: {title}
        acceptance_criteria: [Two rows give two lines]
        implementation_steps: []
        verification:
          required_commands: []
risks: []
"""


def resolution(action: str) -> str:
    return f"""
gap_resolutions:
  - gap: {GAP}
    action: {action}
    rationale: See the story.
    affected_items: []
"""


def plan(title: str = "Write rows as CSV") -> str:
    return f"""
beads:
  - id: write-rows
    title: {title}
    prdRefs: [US-1-1]
    description: Add export.py.
    contextGuidance: {{patterns: [Use csv], anti_patterns: [No string joins]}}
    acceptanceCriteria: [One line per row]
    tests: [Two rows give two lines]
    testCommands:
      - {{mode: process, program: python, args: [-m, pytest, tests/test_export.py]}}
  - id: command
    title: Add the command
    prdRefs: [US-1-1]
    description: Add cli.py.
    contextGuidance: {{patterns: [argparse], anti_patterns: [No globals]}}
    acceptanceCriteria: [The command writes a file]
    tests: [The file is there]
    testCommands:
      - {{mode: process, program: python, args: [-m, pytest, tests/test_cli.py]}}
"""


def expansion(title: str = "Write rows as CSV", blocked_by: str = '"write-rows"') -> str:
    first = (
        f'{{"id": "write-rows", "title": "{title}", "prdRefs": ["US-1-1"], "issueType": "task", '
        '"labels": ["story:US-1-1"], "dependencies": {"blocked_by": []}, "targetFiles": ["export.py"], '
        '"testFiles": ["tests/test_export.py"]}'
    )
    second = (
        '{"id": "command", "title": "Add the command", "prdRefs": ["US-1-1"], "issueType": "task", '
        f'"labels": ["story:US-1-1"], "dependencies": {{"blocked_by": [{blocked_by}]}}, "targetFiles": ["cli.py"]}}'
    )
    return f"{first}\n{second}\n"


def votes(domain: str, best: str = "") -> object:
    """Scores every shown draft 10 in each category, the one that holds ``best`` 15."""

    def say(task: AgentTask) -> str:
        sections = re.split(r"^### (Draft \d+)$", task.brief.text, flags=re.MULTILINE)[1:]
        lines = ["draft_scores:"]
        for label, body in zip(sections[::2], sections[1::2], strict=True):
            points = 15 if best and best in body else 10
            lines.append(f"  {label}:")
            lines += [f"    {name}: {points}" for name in RUBRICS[domain]]  # type: ignore[index]
            lines += [f"    total_score: {points * 5}", f"    reason: Seen by seat {header(task)['seat']}."]
        return "\n".join(lines)

    return say


def interview(*, skipped: bool = False) -> Interview:
    answer = (
        Answer(skipped=True, answered_by="user_skip", skip_reason="no idea") if skipped else Answer(free_text="All")
    )
    return Interview(
        ticket_id="DEMO-1",
        questions=(
            InterviewQuestion(id="Q01", phase="Foundation", prompt="Who exports?", answer=Answer(free_text="Staff")),
            InterviewQuestion(id="Q02", phase="Structure", prompt="Which columns?", answer=answer),
        ),
    )


def prepared(journal: Journal, *more: object) -> Journal:
    """The journal of a run whose scan is done."""
    journal.keep(ScanReport(branch="beadmill/DEMO-1", base="main", base_commit="c0", tree="/ws/tree"))
    journal.keep(RelevantFiles(ticket_id="DEMO-1", files=(RelevantFile(path="export.py"),)))
    for document in more:
        journal.keep(document)  # type: ignore[arg-type]
    return journal


def approved_prd() -> Prd:
    reading = read(PRD_SHAPE, prd())
    assert reading.value is not None
    return reading.value
