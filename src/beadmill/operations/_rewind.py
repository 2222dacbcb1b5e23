"""Where the ticket's branch stood when a node began: a rerun puts branch and tree back there, behind an undo ref."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy.engine import Connection

from beadmill.artifacts.base import Document
from beadmill.artifacts.delivery import FinalTestReport, IntegrationReport
from beadmill.artifacts.qa import QaRound
from beadmill.artifacts.setup import ScanReport
from beadmill.domain.machine import AttemptState
from beadmill.engine.port import Work
from beadmill.operations.ports import Ports
from beadmill.store import blobs
from beadmill.store.journal import attempts


async def rewind(ports: Ports, run: str, work: Work, kept: Sequence[str]) -> str:
    """``kept`` are the visit ids a rerun keeps. Returns the commit, "" when there is no tree to put back."""
    commit = await ports.store.read(lambda conn: _stood(conn, run, frozenset(kept)))
    if not commit or not await asyncio.to_thread(Path(work.repository).is_dir):
        return ""
    tree = await ports.trees.open(work.repository, work.workspace, branch=work.branch, base=work.base)
    if await ports.trees.head(tree) != commit:
        await ports.trees.reset(tree, commit, why="rerun")
    return commit


def _stood(conn: Connection, run: str, kept: frozenset[str]) -> str:
    """Derived from what the kept visits made: candidate, manual QA, final test, last landed bead, base."""
    integration = _kept(conn, run, kept, IntegrationReport)
    if isinstance(integration, IntegrationReport):
        return integration.candidate_commit
    by_hand = _kept(conn, run, kept, QaRound)
    if isinstance(by_hand, QaRound):
        return by_hand.head
    final = _kept(conn, run, kept, FinalTestReport)
    if isinstance(final, FinalTestReport) and final.commit:
        return final.commit
    landed = [
        x for x in attempts.listed(conn, run) if x.state is AttemptState.DONE and x.visit in kept and x.end_commit
    ]
    if landed:
        return max(landed, key=lambda x: str(x.ended)).end_commit
    scan = _kept(conn, run, kept, ScanReport)
    return scan.base_commit if isinstance(scan, ScanReport) else ""


def _kept(conn: Connection, run: str, kept: frozenset[str], kind: type[Document]) -> Document | None:
    rows = [row for row in blobs.listed(conn, run, kind.kind) if row.visit in kept]
    return kind.parse(blobs.get_blob(conn, rows[-1].ref.sha256)) if rows else None
