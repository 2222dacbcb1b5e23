"""The prompts of a run: frozen when it starts, so an edit counts for runs that start after it."""

from __future__ import annotations

from beadmill.briefs.folder import Folder
from beadmill.operations.ports import Ports
from beadmill.store import blobs
from beadmill.store.db import Tx


def folder(ports: Ports) -> Folder:
    return Folder(ports.settings.home / "prompts")


def frozen(ports: Ports, tx: Tx) -> dict[str, str]:
    """``Work.prompts``. Saves happen in the store's write thread too, so none comes in between."""
    edits = folder(ports).edits()
    return {name: blobs.put_blob(tx, text.encode()) if text is not None else "" for name, text in edits.items()}
