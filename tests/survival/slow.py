"""An SOP of one command that waits for a file, so that a test can meet it at work; it counts how often it ran."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.deliver.daemon_world import DaemonWorld

SOP = """
format: 1
title: Slow
description: Waits for a file.
start: wait
nodes:
  - id: wait
    kind: script
    config: {{script: 'until [ -e {folder}/go ]; do sleep 0.05; done; echo ran >> {folder}/ran'}}
    ends: [ok, failed]
"""


def publish(world: DaemonWorld) -> None:
    """Makes the SOP ``slow`` known; the daemon has to have made the database."""
    with closing(sqlite3.connect(world.place.home / "beadmill.db", timeout=10)) as conn:
        made = conn.execute("insert into definitions (kind, name) values ('sop', 'slow')").lastrowid
        conn.execute(
            "insert into definition_versions (definition_id, version, state, body, sha256, created)"
            " values (?, 1, 'published', ?, '', '2030-01-01')",
            (made, SOP.format(folder=world.place.root)),
        )
        conn.commit()


def go(world: DaemonWorld) -> None:
    (world.place.root / "go").touch()


def ran(world: DaemonWorld) -> list[str]:
    path: Path = world.place.root / "ran"
    return path.read_text().splitlines() if path.exists() else []
