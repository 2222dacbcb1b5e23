"""What a conversation has used so far, since CLIs report totals. Standard library only.

It lies beside the workspace's other records, where no agent in a box writes: its bill must not be its own to change.
"""

from __future__ import annotations

import re
from pathlib import Path

from beadmill.domain.values import Json
from beadmill.processes.folder import read_json, write_json


def keep(workspace: Path, agent: str, conversation: str, totals: Json) -> None:
    """Replaced at once."""
    place = _place(workspace, agent, conversation)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_json(place, totals)


def known(workspace: Path, agent: str, conversation: str) -> Json:
    """What was kept; None for a conversation that is new."""
    return read_json(_place(workspace, agent, conversation)) if conversation else None


def _place(workspace: Path, agent: str, conversation: str) -> Path:
    return workspace / "runtime" / "spent" / f"{agent}-{re.sub(r'[^A-Za-z0-9_-]', '', conversation)}.json"
