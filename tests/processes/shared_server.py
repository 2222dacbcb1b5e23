"""``shared_server.py SECONDS``: the server of shared_agent.py, which takes that long to boot. Standard library only."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any


def start(script: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", script], cwd="tree", env=env, start_new_session=True)


async def main(boot: float) -> None:
    running: dict[str, subprocess.Popen[bytes]] = {}

    async def answered(wish: dict[str, Any]) -> dict[str, Any]:
        if "end" in wish:
            process = running.pop(wish["end"], None)
            if process is not None:
                process.kill()
            return {"ended": True}
        env = {**os.environ, **wish["env"]}
        process = start(wish["run"], env)
        running[wish["as"]] = process
        await asyncio.to_thread(process.wait)
        return {"pid": os.getpid()}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said = await answered(json.loads(await reader.readline()))
        writer.write(json.dumps(said).encode() + b"\n")
        await writer.drain()
        writer.close()

    await asyncio.sleep(boot)
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print("listening", server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - what it is for
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
