"""Runs one command in a sandbox and says how it ended: ``in_box.py <json>``, as whatever user it is started by.

The JSON: sandbox, workspace, policy (as of the wire), argv, env, cwd. Answers {code, out, err, seconds} on stdout.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from beadmill.processes import door
from beadmill.processes.spec import Policy
from beadmill.processes.wire import decode
from beadmill.workspaces.sandboxes.choice import load


async def run(wish: dict[str, object]) -> dict[str, object]:
    warnings: list[str] = []
    workspace = Path(str(wish["workspace"]))
    os.chdir(workspace / "runtime")
    out = door.Door(workspace / "runtime", warnings.append)
    policy = await out.open(decode(Policy, wish["policy"]))
    box = await load(str(wish["sandbox"])).open(workspace, policy)
    argv, env = [str(a) for a in wish["argv"]], {"PATH": os.environ["PATH"], **wish["env"]}  # type: ignore[attr-defined,dict-item]
    launch = box.wrap(argv, cwd=Path(str(wish["cwd"])), env=env, program=Path(argv[0]))
    begun = time.monotonic()
    how: dict[str, Any] = {"cwd": launch.cwd, "env": dict(launch.env), "stdin": subprocess.DEVNULL}
    done = await asyncio.to_thread(lambda: subprocess.run(launch.argv, capture_output=True, check=False, **how))
    seconds = time.monotonic() - begun
    await box.close()
    await out.close()
    return {"code": done.returncode, "out": done.stdout.decode(), "err": done.stderr.decode(), "seconds": seconds}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(run(json.loads(sys.argv[1])))))
