"""A change checked by hand from the terminal: results, a file, a changed worktree, and the way to the merge."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deliver.test_manual_qa import item, listed
from tests.journeys.small_world import Small, says

ASKED = ("--set", "manual_qa=on", "--set", "council.interview_questions=0")
OFF = tuple(part for name in ("interview", "prd", "beads", "setup") for part in ("--set", f"gates.{name}=off"))


@pytest.mark.timeout(300)
def test_a_change_is_checked_by_the_command_line_alone(small: Small, tmp_path: Path) -> None:
    small.script(says("qa_checklist", listed(item("The wording"), item("中文", severity="optional"))))
    key = small.ticket(*ASKED, *OFF)
    gate = small.asked(key)
    assert gate["answer_with"] == f"beadmill qa show {key}"
    picture = tmp_path / "seen.bin"
    picture.write_bytes(bytes(range(256)))
    assert small.cli("qa", "submit", key).code == 2  # a required item is open
    assert (
        small.cli("qa", "set", key, "1", "--waive", "No printer here.", "--link", "https://example.org/log").code == 0
    )
    name = small.cli("qa", "attach", key, "1", str(picture), "--json").json["id"]
    assert small.cli("qa", "fetch", key, name, str(tmp_path / "copy.bin")).code == 0
    assert (tmp_path / "copy.bin").read_bytes() == picture.read_bytes()
    assert small.cli("qa", "detach", key, name).code == 0
    shown = small.cli("qa", "show", key).out
    assert "[~] qa-v1-001  The wording\n" in shown
    assert "[ ] qa-v1-002  中文 (optional)\n" in shown
    (Path(gate["detail"]["worktree"]) / "notes.md").write_text("mine\n")
    assert small.cli("qa", "submit", key).code == 0
    small.asked(key)
    assert "The worktree changed: notes.md" in small.cli("qa", "show", key).out
    assert small.cli("qa", "include", key).code == 0
    assert "Merge" in small.asked(key)["title"]
    assert small.cli("qa", "show", key).out == "v1 waived: 1 waived, 1 not checked\n"
    assert small.git("show", f"beadmill/{key}:notes.md") == "mine"
