"""The whole change of a run as a patch: what a person looks at before a merge."""

from __future__ import annotations

import json

from sqlalchemy.engine import Connection

from beadmill.artifacts.delivery import IntegrationReport
from beadmill.domain.values import Actor, Permission
from beadmill.operations import _rows
from beadmill.operations.beads import patch
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require
from beadmill.store import blobs


async def diff(ports: Ports, run: str, *, actor: Actor) -> str:
    """From where the branch left its base to the candidate, "" before there is one. Raises NotFound."""
    require(actor, Permission.READ)
    repository, start, end = await ports.store.read(lambda conn: _span(conn, run))
    return await patch(repository, start, end)


def _span(conn: Connection, run: str) -> tuple[str, str, str]:
    work = _rows.run_row(conn, run).work
    newest = blobs.newest(conn, run, IntegrationReport.kind)
    if newest is None:
        return "", "", ""
    report = json.loads(blobs.get_blob(conn, newest.ref.sha256))
    return work.get("repository", ""), report["merge_base"], report["candidate_commit"]
