"""The files that matter are looked for again when a rework starts and the base has moved."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.domain.values import Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.nodes.build import BuildNode
from tests.nodes.exec_bench import GOOD, Bench, Seeder, chain, planned, publish, put, writes

Git = Callable[..., str]
SOP = chain("build", "check", rework=[("check", "failed", "build")])
FOUND = {"files": [{"path": "other.py", "rationale": "It came with the base.", "relevance": "high"}]}


@dataclass(slots=True)
class Check:
    """Not content the first time; meanwhile ``happens``."""

    happens: Callable[[], None]
    spec: NodeSpec = field(default_factory=lambda: NodeSpec("check", dict, frozenset({"ok", "failed"})))

    async def visit(self, v: Visit, _: Any) -> Outcome:
        if v.ref.n > 1:
            return Outcome("ok")
        self.happens()
        return Outcome("failed", note="Say it louder.")


@pytest.fixture
def bench(tmp_path: Path, repo: Path, git: Git) -> Bench:
    made = Bench.make(tmp_path, repo)
    known = RelevantFiles(ticket_id="APP-1", base_commit=git(repo, "rev-parse", "main"))
    made.nodes |= {"seed": Seeder((*planned(), known)), "build": BuildNode(**made.parts)}
    made.on("coding", writes(GOOD), writes({"loud.py": "loud = 1\n"}))
    made.on("iteration_note", "note")
    made.on("scan", f"<RELEVANT_FILES_RESULT>\n{json.dumps(FOUND)}\n</RELEVANT_FILES_RESULT>")
    return made


async def run(bench: Bench, happens: Callable[[], None]) -> None:
    bench.nodes["check"] = Check(happens)
    await bench.start(SOP, build={"red_on_base": "off"})
    async with bench.daemon():
        await bench.ends()


async def test_a_rework_on_a_moved_base_lists_the_files_again_and_tells_the_coder(bench: Bench, git: Git) -> None:
    def moves() -> None:
        put(bench.repository, {"other.py": "y = 2\n"})
        publish(bench.repository)

    await run(bench, moves)

    (asked,), files = bench.desk.briefs("scan"), bench.last(RelevantFiles)
    tip = git(bench.repository, "rev-parse", "main")
    assert f"The base branch moved to {tip} since the files were listed. Changed there:\n- other.py" in asked
    assert (files.base_commit, [one.path for one in files.files]) == (tip, ["other.py"])
    first, second = bench.desk.briefs("coding")
    assert ("It came with the base." in first, "It came with the base." in second) == (False, True)


async def test_a_rework_on_the_same_base_asks_nobody(bench: Bench) -> None:
    await run(bench, lambda: None)

    assert (bench.desk.briefs("scan"), bench.visits()["check.2"]) == ([], "ok")


async def test_a_list_that_nobody_can_read_leaves_the_old_one(bench: Bench) -> None:
    def moves() -> None:
        put(bench.repository, {"other.py": "y = 2\n"})
        publish(bench.repository)

    bench.on("scan", "no idea")
    bench.on("repair", "no idea")
    await run(bench, moves)

    assert (bench.last(RelevantFiles).files, bench.visits()["check.2"]) == ((), "ok")
