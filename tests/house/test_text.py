"""The repository speaks of the product alone."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.house.source import ROOT

# Written in pieces, so this file does not find itself.
REFUSED = {
    "open end": re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b"),
    "registry host": re.compile(r"pypi\.o" + r"rg|pythonhosted\.o" + r"rg|npmjs\.(o" + r"rg|com)|crates\.i" + r"o"),
    "machine path": re.compile(r"(?<![\w.{}])/(wo" + r"rk|ro" + r"ot)/"),
}


def texts() -> dict[str, str]:
    """Every text file git tracks or would track."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    data = {name: (ROOT / name).read_bytes() for name in listed if name and (ROOT / name).is_file()}
    return {name: raw.decode("utf-8", "replace") for name, raw in data.items() if b"\0" not in raw}


@pytest.mark.parametrize("what", REFUSED)
def test_no_file_holds(what: str) -> None:
    pattern = REFUSED[what]
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("open end", "# TO" + "DO later"),
        ("registry host", "https://py" + "pi.org/x"),
        ("machine path", "'/ro" + "ot/x'"),
    ],
)
def test_a_pattern_sees_what_it_refuses(what: str, line: str) -> None:
    assert REFUSED[what].search(line)
