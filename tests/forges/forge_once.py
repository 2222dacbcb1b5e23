"""One act of the local forge in a process of its own, for tests that kill it: ``forge_once.py <json>``."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from beadmill.forges.contract import ChangeDraft, ChangeRef
from beadmill.forges.local import LocalForge


async def act(order: dict[str, str]) -> str:
    forge, one = LocalForge(Path(order["repository"])), ChangeRef(1)
    if order["act"] == "put":
        await forge.put(ChangeDraft("Title", "body", "beadmill/DEMO-1", "main", order["head"]))
    elif order["act"] == "merge":
        await forge.merge(one, expected_head=order["head"])
    else:
        await forge.close(one, note="enough")
    return (await forge.read(one)).change.status.value


if __name__ == "__main__":
    print(asyncio.run(act(json.loads(sys.argv[1]))))  # noqa: T201 - the test reads it
