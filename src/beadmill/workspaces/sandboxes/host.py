"""No sandbox: commands run as the user, on the host. Standard library only: the runner loads it by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from beadmill.errors import Unavailable
from beadmill.processes.box import Health, Launch
from beadmill.processes.spec import Policy

BANNER = "No sandbox: agents and commands run with your own rights and can reach everything you can."


class HostBox:
    isolates = False
    foreign = False

    def wrap(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        program: Path | None = None,  # noqa: ARG002 - the contract's: here every program is in reach
    ) -> Launch:
        return Launch(tuple(argv), cwd, dict(env))

    async def close(self) -> None:
        """Nothing is open."""


class HostSandbox:
    """Works everywhere and holds nothing back: ``read_only`` of a policy is not enforced, and the banner says so."""

    name = "host"
    networks = frozenset({"on"})

    async def probe(self, image: str = "") -> Health:  # noqa: ARG002 - the contract's: there is no image
        return Health(ok=True, message=BANNER, detail={"isolation": "none"})

    async def open(self, workspace: Path, policy: Policy) -> HostBox:
        """Raises Unavailable for a network policy it cannot hold, and for a workspace that is not there."""
        if policy.network not in self.networks:
            raise Unavailable(
                f"the host sandbox cannot hold the network policy {policy.network!r}",
                code="SANDBOX_POLICY",
                next="Use a sandbox that can, or set the network policy to on.",
            )
        if not workspace.is_dir():  # noqa: ASYNC240 - one look at a local path
            raise Unavailable(
                f"the workspace {workspace} is gone", code="WORKSPACE_GONE", next="Retry the step before."
            )
        return HostBox()

    async def sweep(self, workspace: Path, mark: str) -> tuple[str, ...]:  # noqa: ARG002 - the contract's
        """Its processes are all that there is."""
        return ()
