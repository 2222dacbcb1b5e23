"""Who may do what when the agent asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from beadmill.agents.acp_permission import allowed, outcome
from beadmill.domain.values import Access, Json

OPTIONS = [
    {"optionId": "a", "kind": "allow_always", "name": "Always"},
    {"optionId": "b", "kind": "allow_once", "name": "Once"},
    {"optionId": "c", "kind": "reject_once", "name": "No"},
]


@pytest.mark.parametrize(
    ("kind", "may"),
    [
        ("read", {"none", "read", "write", "online"}),
        ("search", {"none", "read", "write", "online"}),
        ("think", {"none", "read", "write", "online"}),
        ("edit", {"write", "online"}),
        ("delete", {"write", "online"}),
        ("move", {"write", "online"}),
        ("execute", {"write", "online"}),
        ("other", {"write", "online"}),
        (None, {"write", "online"}),
        ("switch_mode", {"write", "online"}),
        ("fetch", {"online"}),
    ],
)
def test_the_access_of_the_seat_decides(tmp_path: Path, kind: str | None, may: set[str]) -> None:
    call = {"kind": kind, "locations": [{"path": str(tmp_path / "a")}]}
    assert {a.value for a in Access if allowed(call, a, cwd=tmp_path, roots=[tmp_path])} == may


@pytest.mark.parametrize(
    "call",
    [
        {"kind": "edit", "locations": [{"path": "/etc/passwd"}]},
        {"kind": "edit", "rawInput": {"file_path": "../out"}},
        {"kind": "edit", "content": [{"type": "diff", "path": "/etc/passwd", "newText": ""}]},
        {"kind": "read", "rawInput": {"path": "/etc/passwd"}},
        {"kind": "execute", "rawInput": {"command": "ls", "cwd": "/"}},
        {"kind": "edit", "locations": [{"path": "link/a"}]},
    ],
)
def test_nothing_outside_the_workspace_is_allowed(tmp_path: Path, call: Json) -> None:
    (tmp_path / "link").symlink_to("/etc")
    assert not allowed(call, Access.WRITE, cwd=tmp_path, roots=[tmp_path])


def test_the_answer_decides_this_one_call() -> None:
    assert outcome(OPTIONS, allow=True) == {"outcome": {"outcome": "selected", "optionId": "b"}}
    assert outcome(OPTIONS, allow=False) == {"outcome": {"outcome": "selected", "optionId": "c"}}
    assert outcome(OPTIONS[:1], allow=True) == {"outcome": {"outcome": "selected", "optionId": "a"}}


def test_without_a_fitting_option_the_call_is_cancelled() -> None:
    assert outcome(OPTIONS[:2], allow=False) == {"outcome": {"outcome": "cancelled"}}
    assert outcome(None, allow=True) == {"outcome": {"outcome": "cancelled"}}
