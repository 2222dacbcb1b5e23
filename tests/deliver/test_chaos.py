"""The benchmark that kills the daemon works from a checkout: a short look with one kill."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).parents[2] / "benchmarks" / "chaos.py"


@pytest.mark.deliver
@pytest.mark.timeout(300)
def test_the_daemon_killed_at_a_name_of_a_short_run_leaves_no_trace(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    options = ["--stories", "hello", "--stride", "1", "--most", "1", "--out", str(out)]
    done = subprocess.run([sys.executable, str(CHAOS), *options], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert (result["kills"], result["found"], result["orphaned"]) == (1, [], [])
