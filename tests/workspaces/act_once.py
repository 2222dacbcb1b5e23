"""One act of Worktrees in a process of its own, for tests that kill it: ``act_once.py <json>``."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from beadmill.workspaces.worktrees import Tree, Worktrees


async def act(order: dict[str, Any]) -> object:
    trees = Worktrees()
    if order["act"] == "open":
        return await trees.open(order["repository"], order["workspace"], branch="beadmill/DEMO-1", base="main")
    tree = Tree(**order["tree"])
    if order["act"] == "reset":
        return await trees.reset(tree, order["to"], why="test")
    return await trees.commit(tree, order["paths"], "one", trailers={"Beadmill-Key": "k"})


if __name__ == "__main__":
    asyncio.run(act(json.loads(sys.argv[1])))
