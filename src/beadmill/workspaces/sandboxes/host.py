"""No isolation at all: the same argv, with the workspace as HOME. The doors show a loud banner for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from beadmill.errors import Unavailable
from beadmill.processes.box import Health, Launch
from beadmill.processes.spec import Policy


@dataclass(frozen=True, slots=True)
class HostBox:
    workspace: Path

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Launch:
        places = {"HOME": str(self.workspace / "home"), "TMPDIR": str(self.workspace / "tmp")}
        return Launch(tuple(argv), cwd, {**env, **places})

    async def close(self) -> None:
        return


class HostSandbox:
    name = "host"

    async def probe(self) -> Health:
        return Health(ok=True, message="commands run as you, with your rights and your network")

    async def open(self, workspace: Path, policy: Policy) -> HostBox:
        if policy.network != "on":
            raise Unavailable(
                f"the host sandbox cannot keep the network {policy.network!r}",
                code="SANDBOX_POLICY",
                next="choose another sandbox, or allow the network",
            )
        for name in ("home", "tmp"):
            (workspace / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        return HostBox(workspace)
