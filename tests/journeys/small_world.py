"""A small package of greetings, a ticket of one bead, and the scenario that delivers it: planning with one seat."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli_for_tests import Cli, Said

FILES = {
    ".gitignore": "__pycache__/\n",
    "README.md": "# Grüße\n\nSays hello. 你好。\n",
    "greet/__init__.py": 'def hello(name: str) -> str:\n    return f"Hello, {name}!"\n',
    "tests/__init__.py": "",
    "tests/test_hello.py": (
        "import unittest\n\nfrom greet import hello\n\n\nclass HelloTest(unittest.TestCase):\n"
        '    def test_hello(self):\n        self.assertEqual(hello("Ann"), "Hello, Ann!")\n'
    ),
}
GOODBYE = 'def goodbye(name: str) -> str:\n    return f"Goodbye, {name}!"\n'
TEST = (
    "import unittest\n\nfrom greet.farewell import goodbye\n\n\nclass GoodbyeTest(unittest.TestCase):\n"
    '    def test_goodbye(self):\n        self.assertEqual(goodbye("Ünal 王"), "Goodbye, Ünal 王!")\n'
)
RUN_TEST = {"mode": "process", "program": "python3", "args": ["-m", "unittest", "tests.test_goodbye"]}
RUN_ALL = {"mode": "process", "program": "python3", "args": ["-m", "unittest", "discover", "-s", "tests", "-t", "."]}
SOLO = ("--set", 'council.seats=["scripted/one"]', "--set", "council.mode=solo")

QUESTIONS = {"questions": [{"id": "Q01", "phase": "Foundation", "question": "Which words say goodbye?"}]}
ASKED = {
    "id": "Q01",
    "question": "Which words say goodbye?",
    "phase": "Foundation",
    "priority": "critical",
    "rationale": "A test holds on to them.",
    "answer_type": "single_choice",
    "options": [{"id": "goodbye", "label": "Goodbye"}, {"id": "bye", "label": "Bye"}],
}
FREE = {
    "id": "QFF1",
    "question": "Is there anything else?",
    "phase": "Assembly",
    "priority": "low",
    "rationale": "Approval comes next.",
    "answer_type": "free_text",
    "options": [],
}
CLEAN = {"status": "clean", "gaps": [], "follow_up_questions": []}
PRD = {
    "product": {"problem_statement": "Nobody can say goodbye.", "target_users": ["People who leave"]},
    "scope": {"in_scope": ["goodbye(name)"], "out_of_scope": ["Other languages"]},
    "technical_requirements": {
        "architecture_constraints": ["Standard library only"],
        "data_model": [],
        "api_contracts": [],
        "security_constraints": [],
        "performance_constraints": [],
        "reliability_constraints": [],
        "error_handling_rules": [],
        "tooling_assumptions": [],
    },
    "epics": [
        {
            "id": "EPIC-1",
            "title": "Farewell",
            "objective": "One can say goodbye.",
            "implementation_steps": ["Add a function"],
            "user_stories": [
                {
                    "id": "US-1-1",
                    "title": "Say goodbye",
                    "acceptance_criteria": ["goodbye(name) answers Goodbye, name!"],
                    "implementation_steps": ["Add greet/farewell.py"],
                    "verification": {"required_commands": [RUN_TEST]},
                }
            ],
        }
    ],
    "risks": [],
}
BEAD = {
    "id": "goodbye",
    "title": "Say goodbye",
    "prdRefs": ["US-1-1"],
    "description": "Add greet/farewell.py with goodbye(name).",
    "contextGuidance": {"patterns": ["As hello does it"], "anti_patterns": ["A class"]},
    "acceptanceCriteria": ["goodbye answers Goodbye, name!"],
    "tests": ["tests/test_goodbye.py calls goodbye()"],
    "testCommands": [RUN_TEST],
}
EXPANDED = {
    **BEAD,
    "issueType": "feature",
    "labels": ["epic:EPIC-1"],
    "dependencies": {"blocked_by": []},
    "targetFiles": ["greet/farewell.py"],
    "testFiles": ["tests/test_goodbye.py"],
}
SETUP = {
    "summary": "Nothing to prepare.",
    "readiness": {"status": "ready", "actions_required": False, "evidence": ["Standard library"], "gaps": []},
    "workspace_inputs": [],
    "workspace_probes": [],
    "steps": [],
    "project_commands": {"prepare": [], "test_full": [RUN_ALL], "lint_full": [], "typecheck_full": []},
    "cautions": [],
}
STATUS = {
    "bead_id": "goodbye",
    "status": "done",
    "checks": {"tests": "pass", "lint": "pass", "typecheck": "pass", "qualitative": "pass"},
    "interfaces": ["greet.farewell.goodbye(name) -> str"],
}
END_TO_END = "tests/test_end_to_end.py"
FINAL = {
    "commands": [{**RUN_TEST, "args": ["-m", "unittest", "tests.test_end_to_end"]}],
    "test_files": [END_TO_END],
    "modified_files": [END_TO_END],
    "file_effects": [{"path": END_TO_END, "intent": "candidate", "reason": "the end-to-end test"}],
    "summary": "Hello and goodbye together.",
    "tests_count": 1,
}
BOTH = (
    "import unittest\n\nfrom greet import hello\nfrom greet.farewell import goodbye\n\n\nclass BothTest(unittest.TestCase):\n"
    '    def test_both(self):\n        self.assertEqual(hello("A") + goodbye("A"), "Hello, A!Goodbye, A!")\n'
)
PULL_REQUEST = {
    "title": "Say goodbye",
    "summary": "greet can say goodbye.",
    "why": "Nobody could.",
    "what_changed": ["greet.farewell.goodbye"],
    "validation": ["its test"],
    "follow_ups": [],
}
AUDIT = {
    "files": [
        {"path": path, "decision": "include", "reason": "part of the change"}
        for path in ("greet/farewell.py", END_TO_END, "tests/test_goodbye.py")
    ]
}
SCANNED = {
    "files": [
        {
            "path": "greet/__init__.py",
            "rationale": "The greetings.",
            "relevance": "high",
            "likely_action": "read",
            "content_preview": "def hello(name)",
        }
    ]
}


def tagged(tag: str, value: Any) -> str:
    return f"<{tag}>\n{json.dumps(value, ensure_ascii=False)}\n</{tag}>\n"


def batch(number: int, question: Any, *, last: bool) -> str:
    progress = {"current": number, "total": 2}
    turn = {"batch_number": number, "progress": progress, "is_final_free_form": last, "ai_commentary": "Please."}
    return tagged("INTERVIEW_BATCH", {**turn, "questions": [question]})


def says(template: str, text: Any, **match: str) -> dict[str, Any]:
    said = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return {"match": {"template": template, **match}, "steps": [{"reply": said}]}


CODING = {
    "match": {"template": "coding"},
    "steps": [
        {"write": {"path": "greet/farewell.py", "content": GOODBYE}},
        {"write": {"path": "tests/test_goodbye.py", "content": TEST}},
        {"reply": tagged("BEAD_STATUS", STATUS)},
    ],
}
REPLIES = [
    says("scan", tagged("RELEVANT_FILES_RESULT", SCANNED)),
    says("interview_draft", QUESTIONS),
    says("interview_turn", batch(1, ASKED, last=False), turn="1"),
    says("interview_turn", batch(2, FREE, last=True), turn="2"),
    says("(interview|prd|beads)_coverage", CLEAN),
    says("full_answers", {"answers": [{"id": "QFF1", "selected_option_ids": [], "free_text": "No."}]}),
    says("prd_draft", PRD),
    says("beads_draft", {"beads": [BEAD]}),
    says("beads_expand", json.dumps(EXPANDED, ensure_ascii=False)),
    says("setup_plan", tagged("EXECUTION_SETUP_PLAN", SETUP)),
    CODING,
    says("iteration_note", "It did not work; try again."),
    {
        "match": {"template": "final_test"},
        "steps": [
            {"write": {"path": END_TO_END, "content": BOTH}},
            {"reply": tagged("FINAL_TEST_COMMANDS", FINAL)},
        ],
    },
    says("review", {"verdict": "approve", "summary": "It says goodbye.", "findings": []}),
    says("candidate_audit", AUDIT),
    says("pull_request", PULL_REQUEST),
]


@dataclass(frozen=True, slots=True)
class Small:
    """``root`` holds the checkout, its origin, the scenario and the home of ``cli``."""

    root: Path

    @property
    def cli(self) -> Cli:
        return Cli(self.root)

    @property
    def checkout(self) -> Path:
        return self.root / "my grüße 中文"

    @property
    def origin(self) -> Path:
        return self.root / "origin.git"

    def git(self, *args: str, at: Path | None = None) -> str:
        argv = ["git", "-C", str(at or self.checkout), "-c", "core.quotePath=false", *args]
        return subprocess.run(argv, check=True, capture_output=True, text=True, env=self.cli.env).stdout.strip()

    def make(self) -> None:
        """Everything but the daemon."""
        self.checkout.mkdir()
        for name, text in FILES.items():
            (self.checkout / name).parent.mkdir(exist_ok=True)
            (self.checkout / name).write_text(text, encoding="utf-8")
        self.git("init", "-q", "--bare", "-b", "main", str(self.origin))
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Zoë Person")
        self.git("config", "user.email", "zoe@example.org")
        self.git("add", "--all")
        self.git("commit", "-qm", "Say hello")
        self.git("remote", "add", "origin", str(self.origin))
        self.git("push", "-qu", "origin", "main")
        self.script()
        self.cli.home.mkdir(mode=0o700)
        lines = ["port = 0", "[agents.scripted]", f"scenario = {json.dumps(str(self.root / 'scenario.json'))}"]
        lines += ["[agents.codex]", 'path = "/nowhere/codex"']  # whatever is installed on this machine
        lines += ["[defaults]", 'manual_qa = "off"']
        (self.cli.home / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def script(self, *first: dict[str, Any]) -> None:
        """The scenario with ``first`` before its replies; read anew by every session."""
        text = json.dumps({"replies": [*first, *REPLIES]}, ensure_ascii=False)
        new = self.root / "scenario.new"
        new.write_text(text, encoding="utf-8")
        new.replace(self.root / "scenario.json")

    def ticket(self, *more: str, sop: str = "deliver") -> str:
        """A started ticket's key."""
        made = self.cli("ticket", "new", "GRUE", "Say goodbye", "--sop", sop, *SOLO, *more, "--start", "--json")
        assert made.code == 0, made.err
        key: str = made.json["key"]
        return key

    def asked(self, key: str) -> dict[str, Any]:
        """The one gate that waits, once it does."""
        watched = self.cli("ticket", "watch", key, "--until-gate")
        assert watched.code == 5, watched.out + watched.err
        gate: dict[str, Any] = self.cli("gate", "show", key, "--json").json
        return gate

    def approve(self, key: str, *titles: str) -> Said:
        """Approves the gates with these words in their titles, one after the other; the last answer."""
        for title in titles:
            gate = self.asked(key)
            assert title in gate["title"], gate["title"]
            said = self.cli("gate", "approve", key)
            assert said.code == 0, said.err
        return said
