"""The build node with the real engine, real git and real commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from beadmill.artifacts.delivery import BeadEvidence
from beadmill.domain.command import CommandSpec
from beadmill.nodes.build import BuildNode
from tests.conftest import Git
from tests.nodes.exec_bench import GOOD, KEY, Bench, Seeder, bead, chain, lapses, marker, planned, put, writes

WRONG = {**GOOD, "greet.py": "def greet(name):\n    return 'bye'\n"}


@pytest.fixture
def bench(tmp_path: Path, repo: Path) -> Bench:
    made = Bench.make(tmp_path, repo)
    made.nodes |= {"seed": Seeder(planned()), "build": BuildNode(**made.parts)}
    made.on("iteration_note", "The greeting was wrong.")
    return made


async def run(bench: Bench, **settings: object) -> None:
    await bench.start(chain("build"), **settings)
    async with bench.daemon():
        await bench.ends()


async def test_a_bead_is_built_proven_and_committed_once(bench: Bench, git: Git) -> None:
    bench.on("coding", writes(GOOD, interfaces=["greet(name) -> str"]))
    await run(bench)
    evidence = bench.last(BeadEvidence)
    assert bench.visits() == {"seed.1": "ok", "build.1": "ok"}
    assert git(bench.tree, "log", "--format=%s", "main..HEAD") == "bead(greet): Add greet"
    assert git(bench.tree, "rev-parse", "HEAD") == evidence.commit
    assert git(bench.tree, "status", "--porcelain") == ""
    assert evidence.paths == ("greet.py", "tests/__init__.py", "tests/test_greet.py")
    assert (evidence.holds, evidence.red_on_base.result, evidence.interfaces) == (True, "absent", ("greet(name) -> str",))
