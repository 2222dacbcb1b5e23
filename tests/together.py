"""Which tests run on one worker: those that share what takes seconds to make, or would be in each other's way.

Groups go by name: pytest 9.2 keeps the ids of tests to itself, so the marks of xdist reach its scheduler no more.
"""

from __future__ import annotations

import re
from typing import Final

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# A folder = each of its modules is a group; anything else = all tests whose id starts so.
TOGETHER: Final = (
    "tests/browser/",
    "tests/cli/",
    "tests/deliver/test_killed_daemon.py::test_a_short_sop",
    "tests/deliver/test_mixed_council.py",
    "tests/demo/test_demo_run.py::TestScripted",
    "tests/demo/test_scenario.py",
    "tests/journeys/",
    "tests/nodes/test_exec_delivery.py",
    "tests/operations/test_councils.py",
    # Two homes unpacked from one archive have the same marks of processes: a daemon that sweeps one sweeps the other.
    "tests/survival/test_upgrade.py",
)
OPENCODE: Final = re.compile(r"tests/agents/(test_opencode\.py|.*\[opencode[\]-])")  # its servers boot for seconds


def group(test: str) -> str:
    """Its own id for a test that goes anywhere."""
    if OPENCODE.match(test):
        return "opencode"
    found = next((start for start in TOGETHER if test.startswith(start)), "")
    return test.partition("::")[0] if found.endswith("/") else found or test


class Together(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
