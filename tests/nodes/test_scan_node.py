from __future__ import annotations

from pathlib import Path

import pytest

from beadmill.artifacts.relevant_files import RelevantFiles
from beadmill.artifacts.setup import ScanReport
from beadmill.briefs import Briefs
from beadmill.domain.machine import Phase
from beadmill.domain.values import Access
from beadmill.engine.port import Work
from beadmill.errors import BeadmillError
from beadmill.nodes.scan import ScanConfig, ScanNode
from beadmill.workspaces.worktrees import Worktrees
from tests.nodes.fakes import FakeVisit, Journal, drive, seats, table

FOUND = """<RELEVANT_FILES_RESULT>
files:
  - path: notes.md
    rationale: Background.
    relevance: low
    likely_action: read
    content_preview: ""
  - path: README.md
    rationale: The only file.
    relevance: high
    likely_action: modify
    content_preview: sample
</RELEVANT_FILES_RESULT>"""


def journal(monkeypatch: pytest.MonkeyPatch, repository: Path, workspace: Path) -> Journal:
    here = Work("DEMO-1", "Export", "As CSV.", "", "demo", str(repository), str(workspace), "beadmill/DEMO-1", "")
    made = FakeVisit.__init__

    def placed(self: FakeVisit, *a: object, **k: object) -> None:
        made(self, *a, **k)  # type: ignore[arg-type]
        self.work = here

    monkeypatch.setattr(FakeVisit, "__init__", placed)
    return Journal(table({"scan": FOUND}), [], seats("a", "b"))


async def test_the_scan_opens_the_worktree_and_lists_files_by_relevance(
    monkeypatch: pytest.MonkeyPatch, repo: Path, tmp_path: Path
) -> None:
    rows = journal(monkeypatch, repo, tmp_path / "ws" / "demo" / "DEMO-1")
    outcome = await drive(ScanNode(Worktrees(), Briefs()), ScanConfig(), rows)
    place, files = rows.last(ScanReport), rows.last(RelevantFiles)
    assert (outcome.edge, [ref.kind for ref in outcome.made]) == ("ok", ["workspace", "relevant_files"])
    assert (Path(place.tree) / "README.md").read_text() == "sample\n"
    assert [file.path for file in files.files] == ["README.md", "notes.md"]
    assert (files.ticket_id, files.base_commit) == ("DEMO-1", place.base_commit)
    assert rows.phases == [Phase.SCANNING_RELEVANT_FILES]


async def test_the_implementer_reads_in_the_worktree(
    monkeypatch: pytest.MonkeyPatch, repo: Path, tmp_path: Path
) -> None:
    rows = journal(monkeypatch, repo, tmp_path / "ws" / "demo" / "DEMO-1")
    await drive(ScanNode(Worktrees(), Briefs()), ScanConfig(), rows)
    (task,) = rows.tasks.values()
    assert (task.seat.model, task.access, str(task.cwd)) == ("a", Access.READ, rows.last(ScanReport).tree)
    assert "Title: Export" in task.brief.text


async def test_a_repository_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = journal(monkeypatch, tmp_path / "nowhere", tmp_path / "ws" / "demo" / "DEMO-1")
    with pytest.raises(BeadmillError) as caught:
        await drive(ScanNode(Worktrees(), Briefs()), ScanConfig(), rows)
    assert "nowhere" in caught.value.message
