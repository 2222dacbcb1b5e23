"""The limits of the scan (reference looptroop-lifecycle §6)."""

from __future__ import annotations

import json
from typing import Any

from beadmill.artifacts.reading import read
from beadmill.artifacts.reading.shapes import RELEVANT_FILES
from beadmill.artifacts.relevant_files import RelevantFiles


def file(n: int, relevance: str = "medium", size: int = 10) -> dict[str, Any]:
    return {"path": f"f{n}.py", "rationale": "x" * size, "relevance": relevance, "likely_action": "read"}


def taken(*files: dict[str, Any], cut: int | None = None) -> tuple[RelevantFiles, list[str]]:
    text = json.dumps({"files": files})
    reading = read(RELEVANT_FILES, f"<RELEVANT_FILES_RESULT>\n{text[:cut]}\n</RELEVANT_FILES_RESULT>")
    assert reading.value is not None, reading.error
    return reading.value, [note.title for note in reading.interventions]


def test_thirty_files_are_the_most_and_the_least_relevant_go() -> None:
    files, notes = taken(*(file(n, "low") for n in range(25)), *(file(n, "high") for n in range(25, 50)))

    assert [one.path for one in files.files] == [f"f{n}.py" for n in (*range(25, 50), *range(5))]
    assert notes == ["least relevant files over the limit"]


def test_the_texts_of_all_files_have_160_000_characters_at_most() -> None:
    files, notes = taken(file(1, "low", 1), file(2, "high", 100_000), file(3, "medium", 60_000))

    assert ([one.path for one in files.files], notes) == (
        ["f2.py", "f3.py"],
        ["least relevant files over the limit"],
    )


def test_what_a_file_does_not_say_has_a_default() -> None:
    files, _ = taken({"path": "a.py"}, file(2) | {"relevance": "huge", "likely_action": "burn"})

    assert {(one.path, one.relevance, one.likely_action) for one in files.files} == {
        ("a.py", "medium", "read"),
        ("f2.py", "medium", "read"),
    }


def test_a_wrong_count_is_corrected() -> None:
    reading = read(RELEVANT_FILES, json.dumps({"file_count": 9, "files": [file(1), file(2)]}))
    assert reading.value is not None
    assert len(reading.value.files) == 2
