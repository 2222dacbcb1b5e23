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

from beadmill.processes.spec import Policy
from beadmill.processes.wire import decode
from beadmill.workspaces.sandboxes.choice import load


def run(wish: dict[str, object]) -> dict[str, object]:
    opening = load(str(wish["sandbox"])).open(Path(str(wish["workspace"])), decode(Policy, wish["policy"]))
    box = asyncio.run(opening)
    argv, env = [str(a) for a in wish["argv"]], {"PATH": os.environ["PATH"], **wish["env"]}  # type: ignore[attr-defined,dict-item]
    launch = box.wrap(argv, cwd=Path(str(wish["cwd"])), env=env, program=Path(argv[0]))
    begun = time.monotonic()
    done = subprocess.run(
        launch.argv, cwd=launch.cwd, env=dict(launch.env), capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    seconds = time.monotonic() - begun
    asyncio.run(box.close())
    return {"code": done.returncode, "out": done.stdout.decode(), "err": done.stderr.decode(), "seconds": seconds}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(json.loads(sys.argv[1]))))
