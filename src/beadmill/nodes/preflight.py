"""Preflight: is everything there that the execution needs? (reference §7.1, checks adapted)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from beadmill.agents.contract import Agent
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.setup import Check, PreflightReport
from beadmill.domain.bead import check_graph, runnable
from beadmill.domain.machine import Phase
from beadmill.domain.values import SYSTEM, Outcome, Seat
from beadmill.engine.port import NodeSpec, Visit, Work
from beadmill.errors import BeadmillError, Blocked
from beadmill.forges.contract import Forge
from beadmill.git import commits
from beadmill.nodes._config import NoConfig
from beadmill.nodes._seating import implementer, reviewer, seat
from beadmill.processes.box import Health, Sandbox
from beadmill.proof.noise import is_noise
from beadmill.settings import RunSettings
from beadmill.store.ledger import Facts
from beadmill.workspaces import filling, readiness
from beadmill.workspaces.filling import Failed
from beadmill.workspaces.tree import repo_of
from beadmill.workspaces.worktrees import Tree, Worktrees

NO_SERVER: Final = "set network to on or off, or take an agent that is not a server"


@dataclass(frozen=True, slots=True)
class Found:
    """One check, as a step result."""

    name: str
    category: str
    result: str  # pass | warning | fail
    message: str = ""
    next: str = ""


class PreflightNode:
    spec = NodeSpec("preflight", NoConfig, frozenset({"ok"}), reads=(Beads,), writes=(PreflightReport,), place=True)

    def __init__(
        self,
        *,
        trees: Worktrees,
        agents: Callable[[Seat], Agent],
        sandbox: Callable[[str], Sandbox],
        forge: Callable[[Work], Forge],
        facts: Facts,
    ) -> None:
        """``agents`` raises Unavailable for an agent nobody registered."""
        self.trees = trees
        self.agents = agents
        self.sandbox = sandbox
        self.forge = forge
        self.facts = facts

    async def visit(self, v: Visit, _cfg: NoConfig, /) -> Outcome:
        await v.phase(Phase.PRE_FLIGHT_CHECK)
        unfilled = await v.step("submodules", self._submodules, v.work)
        found = await v.step("checks", self.checks, v, unfilled)
        checks = tuple(Check.model_validate({f: getattr(one, f) for f in Found.__slots__}) for one in found)
        failed = [check for check in checks if check.result == "fail"]
        ref = await v.put(PreflightReport(passed=not failed, checks=checks), by=SYSTEM)
        if failed:
            raise Blocked(
                "PREFLIGHT_FAILED",
                f"{len(failed)} of {len(checks)} checks fail: {', '.join(check.name for check in failed)}",
                forget=("submodules", "checks"),
                details={"checks": [check.model_dump(mode="json") for check in failed]},
                kept="the approved plan",
                next="; ".join(dict.fromkeys(check.next for check in failed if check.next)) or "mend them, then retry",
            )
        warnings = sum(check.result == "warning" for check in checks)
        return Outcome("ok", made=(ref,), note=f"{len(checks)} checks, {warnings} warnings")

    async def _submodules(self, work: Work) -> tuple[Failed, ...]:
        """Filled before anybody codes, so that what cannot be had is seen now. A worktree that cannot be opened is told
        by the checks."""
        try:
            return await filling.set_up(await self._open(work))
        except BeadmillError:
            return ()

    async def checks(self, v: Visit, unfilled: tuple[Failed, ...]) -> tuple[Found, ...]:
        """All checks, whatever the first ones say: a person mends everything in one go."""
        seats = (implementer(v.settings), reviewer(v.settings), *(seat(c) for c in v.settings.council.seats))
        found = [await self._agent(one, v.settings.network) for one in dict.fromkeys(seats)]
        found.append(await self._sandbox(v.settings))
        found += await self._plan(v)
        found += await self._tree(v.work, unfilled)
        found.append(await self._forge(v.work))
        return tuple(found)

    async def _agent(self, one: Seat, network: str) -> Found:
        name = f"agent {one}"
        try:
            agent = self.agents(one)
            installed = await agent.detect()
        except BeadmillError as error:
            return Found(name, "agents", "fail", error.message, error.next)
        if installed is None:
            return Found(name, "agents", "fail", f"{one.agent} is not installed", f"install {one.agent}, then retry")
        if installed.signed_in is False:
            return Found(name, "agents", "fail", f"{one.agent} is not signed in", f"sign in to {one.agent}, then retry")
        if network == "allow-list" and hasattr(agent, "server_idle"):
            return Found(name, "agents", "fail", f"{one.agent} is a server, which no allow-list can hold", NO_SERVER)
        said = f"{installed.version} at {installed.path}"
        if installed.signed_in is None:
            return Found(name, "agents", "warning", f"{said}; whether it is signed in shows with its first turn")
        return Found(name, "agents", "pass", said)

    async def _sandbox(self, settings: RunSettings) -> Found:
        name, network = settings.sandbox, settings.network
        sandbox = self.sandbox(name)
        health = await sandbox.probe(settings.sandbox_image)
        found = _health(f"sandbox {name}", "sandbox", health, "choose another sandbox in the settings")
        if network not in sandbox.networks:
            said = f"it cannot hold the network policy {network!r} for commands"
            return Found(found.name, found.category, "fail", said, "set network to on, or use bubblewrap or container")
        if health.ok and name == "host":
            said = "agents run as you, without a sandbox"
            return Found(found.name, found.category, "warning", health.message or said)
        return found

    async def _forge(self, work: Work) -> Found:
        try:
            forge = self.forge(work)
        except BeadmillError as error:
            return Found("forge", "forge", "fail", error.message, error.next)
        return _health(f"forge {forge.name}", "forge", await forge.probe(), "check the remote and your access to it")

    async def _plan(self, v: Visit) -> list[Found]:
        try:
            beads = await v.latest(Beads)
        except Blocked as missing:
            return [Found("beads", "plan", "fail", missing.message, missing.next)]
        problems = [*check_graph(beads.beads)]
        if not problems and not runnable(beads.beads, await v.attempts()):
            problems = ["no bead can be started"]
        graph = _found("beads and their graph", "plan", "; ".join(problems), "send the run back to beads")
        approved = await self.facts.approved(v.ref.run, Beads.kind)
        unlike = "" if approved == beads.sha256 else "the newest plan is not the one that was approved"
        return [graph, _found("approval of the beads", "plan", unlike, "send the run back to beads and approve again")]

    async def _open(self, work: Work) -> Tree:
        return await self.trees.open(work.repository, work.workspace, branch=work.branch, base=work.base)

    async def _tree(self, work: Work, unfilled: tuple[Failed, ...]) -> list[Found]:
        """Worktree on its branch and clean, base reachable, an identity to commit with; then the readiness contract."""
        try:
            tree = await self._open(work)
            found = [Found("worktree", "git", "pass", f"{tree.branch} from {tree.base} at {tree.base_commit[:12]}")]
            found.append(await self._clean(tree))
            found.append(await self._base(tree))
            found += await self._identity(tree)
            points = await readiness.look(tree, unfilled)
            found += [Found(point.name, "readiness", point.result, point.said, point.next) for point in points]
        except BeadmillError as error:
            return [Found("worktree", "git", "fail", error.message, error.next)]
        return found

    async def _clean(self, tree: Tree) -> Found:
        status = await self.trees.status(tree)
        dirty = [one.path for one in status if one.code.strip() != "??" or not is_noise(one.path)]
        if dirty:
            shown = ", ".join(dirty[:5])
            return Found(
                "clean worktree", "git", "fail", f"uncommitted changes: {shown}", "take them out of the worktree"
            )
        if status:
            return Found(
                "clean worktree", "git", "warning", f"generated files that git does not ignore: {status[0].path}"
            )
        return Found("clean worktree", "git", "pass")

    async def _base(self, tree: Tree) -> Found:
        try:
            tip = await self.trees.fetch_base(tree)
        except BeadmillError as error:
            return Found("base branch", "git", "fail", error.message, error.next)
        return Found("base branch", "git", "pass", f"{tree.base} is at {tip[:12]}")

    async def _identity(self, tree: Tree) -> list[Found]:
        """Who commits; and a real signature when commits are signed: a key that asks for its password would wait."""
        repo, name = repo_of(tree), "git identity"
        try:
            found = [Found(name, "git", "pass", await commits.identity(repo))]
            if await commits.signs(repo):
                name = "commit signing"
                await commits.try_signing(repo)
                found.append(Found(name, "git", "pass", "a commit was signed to try"))
        except BeadmillError as error:
            return [Found(name, "git", "fail", error.message, error.next)]
        return found


def _found(name: str, category: str, problem: str, then: str) -> Found:
    return Found(name, category, "fail", problem, then) if problem else Found(name, category, "pass")


def _health(name: str, category: str, health: Health, then: str) -> Found:
    return Found(name, category, "pass" if health.ok else "fail", health.message, "" if health.ok else then)
