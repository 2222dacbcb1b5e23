"""The demo's ticket as four beads that need nothing of each other, each of which takes a while to write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from beadmill.demo import material

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = ("first", "second", "third", "fourth")
STORIES = ["US-1-1", "US-1-2", "US-2-1", "US-2-2"]
SUITE = "tests/test_end_to_end.py"


def scenario(seconds: float) -> dict[str, Any]:
    """Every turn of coding takes ``seconds``; all else answers at once."""
    kept = [r for r in material.scenario()["replies"] if r["match"]["template"] not in ("coding", "final_test")]
    for reply in kept:
        if reply["match"]["template"] == "beads_refine":
            reply["steps"] = [{"reply": _refined(reply["steps"][0]["reply"])}]
        elif reply["match"]["template"] == "beads_expand":
            reply["steps"] = [{"reply": _expanded(reply["steps"][0]["reply"])}]
    return {"replies": [*kept, *(_coding(name, seconds) for name in NAMES), _final_test()]}


def _bead(like: Mapping[str, Any], n: int) -> dict[str, Any]:
    name = NAMES[n]
    command = {"mode": "process", "program": "python3", "args": ["-m", "unittest", f"tests.test_{name}"]}
    return {
        **like, "id": name, "title": f"The {name} part", "prdRefs": [STORIES[n]],
        "tests": [f"tests/test_{name}.py"], "testCommands": [command],
    }  # fmt: skip


def _refined(text: str) -> str:
    like = YAML(typ="safe").load(text)["beads"][0]
    return json.dumps({"beads": [_bead(like, n) for n in range(len(NAMES))], "changes": []})


def _expanded(text: str) -> str:
    refined = next(r for r in material.scenario()["replies"] if r["match"]["template"] == "beads_refine")
    like = YAML(typ="safe").load(refined["steps"][0]["reply"])["beads"][0]
    more = {key: json.loads(text.splitlines()[0])[key] for key in ("issueType", "labels", "dependencies")}
    rows = [
        {**_bead(like, n), **more, "targetFiles": [f"units/{name}.py"], "testFiles": [f"tests/test_{name}.py"]}
        for n, name in enumerate(NAMES)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def _coding(name: str, seconds: float) -> dict[str, Any]:
    checks = dict.fromkeys(("tests", "lint", "typecheck", "qualitative"), "pass")
    marker = json.dumps({"bead_id": name, "status": "done", "checks": checks})
    return {
        "match": {"template": "coding", "subject": f"^{name} try "},
        "steps": [
            {"wait": seconds},
            {"write": {"path": f"units/{name}.py", "content": f"NAME = {name!r}\n"}},
            {"write": {"path": f"tests/test_{name}.py", "content": _test(name)}},
            {"reply": f"<BEAD_STATUS>\n{marker}\n</BEAD_STATUS>\n"},
        ],
    }


def _test(*names: str) -> str:
    asserts = "".join(
        f"    def test_{name}(self):\n        self.assertEqual({name}.NAME, {name!r})\n\n" for name in names
    )
    return f"import unittest\n\nfrom units import {', '.join(names)}\n\n\nclass Parts(unittest.TestCase):\n{asserts}"


def _final_test() -> dict[str, Any]:
    command = {"mode": "process", "program": "python3", "args": ["-m", "unittest", "tests.test_end_to_end"]}
    said = {"commands": [command], "test_files": [SUITE], "modified_files": [SUITE], "summary": "All parts."}
    return {
        "match": {"template": "final_test"},
        "steps": [
            {"write": {"path": SUITE, "content": _test(*NAMES)}},
            {"reply": f"<FINAL_TEST_COMMANDS>\n{json.dumps(said)}\n</FINAL_TEST_COMMANDS>\n"},
        ],
    }
