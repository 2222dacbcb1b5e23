"""CommandSpec at the border: every spelling that is understood, every one that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from beadmill.artifacts.command import read_command, write_command
from beadmill.domain.command import CommandSpec


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("npm test", CommandSpec(mode="shell", script="npm test")),
        ({"program": "go", "args": ["test"]}, CommandSpec(program="go", args=("test",))),
        ({"script": "a && b"}, CommandSpec(mode="shell", script="a && b")),
        ({"mode": "process", "program": "go", "script": "", "cwd": "", "timeoutMs": None}, CommandSpec(program="go")),
        ({"program": "go", "timeoutMs": "5000"}, CommandSpec(program="go", timeout_ms=5000)),
        ({"program": "go", "env": [{"name": "A", "value": "1"}]}, CommandSpec(program="go", env={"A": "1"})),
    ],
)
def test_a_command_is_understood(value: Any, wanted: CommandSpec) -> None:
    assert read_command(value) == wanted
    assert read_command(write_command(wanted)) == wanted


@pytest.mark.parametrize(
    "value",
    [
        7,
        None,
        [],
        {"mode": "process"},
        {"program": "go", "cwd": "../x"},
        {"program": "go", "timeoutMs": "soon"},
        {"program": "go", "timeoutMs": True},
        {"program": "go", "timeoutMs": 5},
        {"program": ["go"]},
        {"program": "go", "args": "test"},
        {"program": "go", "args": [1]},
        {"program": "go", "env": {"A": 1}},
        {"program": "go", "shell": "cmd"},
        {"mode": "magic", "program": "go"},
        {"program": "go", "sudo": "yes"},
    ],
)
def test_what_is_no_command_is_a_value_error(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_command(value)
