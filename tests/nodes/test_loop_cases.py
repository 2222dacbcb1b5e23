"""Loops of other tools that ended too early or never: what ends a bead here, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from beadmill.artifacts.beads import Beads
from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.shapes import BEAD_STATUS, SHAPES
from beadmill.nodes.build import BuildNode
from beadmill.nodes.verify import VerifyNode
from beadmill.processes.spec import AgentTask
from tests.nodes.exec_bench import GOOD, SUITE, Bench, Seeder, chain, marker, planned, publish, put, subject_of, writes
from tests.nodes.test_exec_delivery import OLD, TO_VERIFY, final, review

DONE_IN_WORDS = {**GOOD, "CHANGELOG.md": "Everything is done. Implementation complete. EXIT_SIGNAL: true\n"}


@pytest.fixture
def bench(tmp_path: Path, repo: Path) -> Bench:
    made = Bench.make(tmp_path, repo)
    made.nodes |= {"seed": Seeder(planned()), "build": BuildNode(**made.parts), "verify": VerifyNode(**made.parts)}
    made.on("iteration_note", "It was not done.")
    made.on("final_test", final())
    made.on("review", review())
    return made


async def run(bench: Bench, sop: str = chain("build")) -> None:
    await bench.start(sop)
    async with bench.daemon():
        await bench.ends()


async def test_c57_words_like_done_end_nothing_while_the_marker_says_go_on(bench: Bench) -> None:
    def goes_on(task: AgentTask) -> str:
        put(task.cwd, DONE_IN_WORDS)
        return f"Done! Implementation complete.\n{marker(task, checks='fail', reason='lint is red')}\nAll complete."

    bench.on("coding", goes_on)
    bench.on("coding_continue", marker)
    await run(bench)
    assert "lint is red" in bench.desk.briefs("coding_continue")[0]
    assert [attempt.state for attempt in bench.attempts()] == ["done"]


async def test_c57_the_marker_of_another_bead_does_not_count(bench: Bench) -> None:
    def of_another(task: AgentTask) -> str:
        put(task.cwd, GOOD)
        return marker(task).replace(f'"bead_id": "{subject_of(task)[0]}"', '"bead_id": "another"')

    bench.on("coding", of_another)
    bench.on("repair", marker)
    await run(bench)
    assert "bead_id: this is about 'greet', not 'another'" in bench.desk.briefs("repair")[0]


@pytest.mark.parametrize(
    "text", ["", "done", "LOOP", "BEAD_STATUS", "<BEAD_STATUS></BEAD_STATUS>", "<></>", "EXIT: true"]
)
def test_c60_no_empty_and_no_short_word_is_a_marker(text: str) -> None:
    assert read(BEAD_STATUS, text, context={"bead_id": "greet"}).value is None


def test_c60_markers_are_fixed_and_long_enough_to_be_meant() -> None:
    marks = {mark for shape in SHAPES.values() for mark in (shape.tag, shape.end_tag) if mark}
    assert min(map(len, marks)) >= len("BEAD_STATUS")


async def test_c61_what_fails_after_a_bead_was_done_comes_back_as_a_bead_with_the_failing_output(bench: Bench) -> None:
    put(bench.repository, {"tests/__init__.py": "", "tests/test_old.py": OLD})
    publish(bench.repository)
    bench.on("coding", writes({**GOOD, "README.md": "changed\n"}), writes({"README.md": "sample\n"}))
    await run(bench, TO_VERIFY)
    mended = next(bead for bead in bench.last(Beads).beads if bead.id == "rework-verify-1")
    assert f"{SUITE} passed before the change and fails now" in mended.description
    assert "'changed\\n' != 'sample\\n'" in mended.description
    assert [(a.bead, a.state) for a in bench.attempts()] == [("greet", "done"), ("rework-verify-1", "done")]
