"""Setup, preflight, script and gate with the real engine, real git and real commands."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from repositories_for_tests import with_submodule

from beadmill.agents.contract import Capabilities, Installed
from beadmill.artifacts.beads import Beads
from beadmill.artifacts.setup import PreflightReport, SetupPlan, SetupProfile
from beadmill.domain.values import Seat
from beadmill.errors import Unavailable
from beadmill.nodes.gate import GateNode
from beadmill.nodes.preflight import PreflightNode
from beadmill.nodes.script import ScriptNode
from beadmill.nodes.setup import SetupNode
from beadmill.store import tables
from beadmill.workspaces.sandboxes import choice
from beadmill.workspaces.sandboxes.host import HostSandbox
from tests.conftest import Git
from tests.nodes.exec_bench import GOOD, KEY, SUITE, Bench, Seeder, bead, chain, planned, put

PROBE = {
    "id": "py",
    "command": {"mode": "process", "program": "python3", "args": ["-c", "import this"]},
    "purpose": "runs",
}


def reply(**more: Any) -> str:
    plan = {
        "summary": "ready",
        "readiness": {"status": "ready", "actions_required": False, "evidence": [], "gaps": []},
        "workspace_inputs": [],
        "workspace_probes": [PROBE],
        "steps": [],
        "project_commands": {"prepare": [], "test_full": [SUITE_JSON], "lint_full": [], "typecheck_full": []},
        "cautions": [],
    }
    return f"<EXECUTION_SETUP_PLAN>\n{json.dumps(plan | more)}\n</EXECUTION_SETUP_PLAN>"


SUITE_JSON = {"mode": "process", "program": SUITE.program, "args": list(SUITE.args)}
NEEDED = {"status": "partial", "actions_required": True, "evidence": [], "gaps": ["something"]}


def step(script: str, **more: Any) -> dict[str, Any]:
    return {"id": "s1", "title": "Prepare", "commands": [{"mode": "shell", "script": script}], "required": True} | more


@pytest.fixture
def bench(tmp_path: Path, repo: Path) -> Bench:
    put(repo, GOOD)
    made = Bench.make(tmp_path, repo)
    made.nodes |= {"seed": Seeder(planned()[:3]), "setup": SetupNode(**made.parts)}
    return made


async def run(bench: Bench, sop: str = "", **settings: object) -> None:
    await bench.start(sop or chain("setup"), **settings)
    async with bench.daemon():
        await bench.ends()


async def test_a_plan_is_carried_out_and_verified_with_a_baseline(bench: Bench) -> None:
    bench.on("setup_plan", reply(readiness=NEEDED, steps=[step("echo ready > ready.log")]))
    await run(bench)
    profile = bench.last(SetupProfile)
    assert bench.visits() == {"seed.1": "ok", "setup.1": "ready"}
    assert [(r.purpose, r.exit) for r in (*profile.bootstrap, *profile.probes)] == [
        ("setup: Prepare", 0),
        ("probe: runs", 0),
    ]
    assert [(r.command, r.exit) for r in profile.baseline] == [(str(SUITE), 0)]


async def test_the_person_may_ask_for_another_plan_with_a_note(bench: Bench) -> None:
    bench.on("setup_plan", reply(), reply(summary="second"))
    await bench.start(chain("setup"), gates={"setup": "required"})
    async with bench.daemon():
        await bench.answer("regenerate", note="Use the cache.")
        await bench.answer("approve")
        await bench.until(lambda: bench.run_state() == "completed")
    assert "Use the cache." in bench.desk.briefs("setup_plan")[1]
    assert bench.last(SetupPlan).summary == "second"


async def test_what_setup_changed_in_the_repository_is_taken_out_behind_an_undo_ref(bench: Bench, git: Git) -> None:
    bench.on("setup_plan", reply(readiness=NEEDED, steps=[step("echo changed > README.md; echo x > new.txt")]))
    await run(bench)
    (note,) = bench.last(SetupProfile).notes
    assert note.startswith("setup changed README.md, new.txt; the change is kept in refs/beadmill/undo/APP-1/")
    assert git(bench.tree, "status", "--porcelain") == ""


async def test_a_failed_step_is_repaired_by_an_agent_and_verified_again(bench: Bench) -> None:
    bench.on("setup_plan", reply(readiness=NEEDED, steps=[step("exit 3")]))
    bench.on("setup_repair", reply(readiness=NEEDED, steps=[step("true")]))
    await run(bench)
    assert bench.last(SetupProfile).status == "ready"
    assert "exit 3" in bench.desk.briefs("setup_repair")[0]
    assert bench.last(SetupProfile).notes == ("repair 1 after 'exit 3' failed, with other commands",)


async def test_a_workspace_that_cannot_be_prepared_blocks(bench: Bench) -> None:
    bench.on("setup_plan", reply(readiness=NEEDED, steps=[step("exit 3")]))
    bench.on("setup_repair", reply(readiness=NEEDED, steps=[step("exit 4")]))
    await run(bench, build={"attempts": 2})
    (gate,) = bench.gates()
    assert gate["detail"]["code"] == "EXECUTION_SETUP_FAILED"
    assert gate["detail"]["details"]["failed"] == ["exit 4"]
    assert bench.last(SetupProfile).status == "blocked"


async def test_the_note_of_a_retry_reaches_the_agent_that_repairs_the_workspace(bench: Bench) -> None:
    bench.on("setup_plan", reply(readiness=NEEDED, steps=[step("exit 3")]))
    bench.on(
        "setup_repair", reply(readiness=NEEDED, steps=[step("exit 4")]), reply(readiness=NEEDED, steps=[step("true")])
    )
    await bench.start(chain("setup"), build={"attempts": 2})
    async with bench.daemon():
        await bench.answer("retry", note="Install nothing.")
        await bench.until(lambda: bench.run_state() == "completed")
    before, after = bench.desk.briefs("setup_repair")
    assert ("Install nothing." in before, "Install nothing." in after) == (False, True)


async def test_an_optional_step_may_fail(bench: Bench) -> None:
    bench.on("setup_plan", reply(readiness=NEEDED, steps=[step("exit 3", required=False)]))
    await run(bench)
    assert bench.last(SetupProfile).notes == ("the optional step 'Prepare' failed",)


def wanted(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "kind": "file", "source_status": "untracked", "category": "local_config"} | more


async def test_approved_inputs_are_copied_from_the_checkout(bench: Bench) -> None:
    put(bench.repository, {"local.cfg": "port = 1\n"})
    bench.on("setup_plan", reply(readiness=NEEDED, workspace_inputs=[wanted("local.cfg")]))
    await run(bench)
    assert bench.last(SetupProfile).inputs_copied == ("local.cfg",)
    assert (bench.tree / "local.cfg").read_text() == "port = 1\n"


async def test_c10_an_approved_env_file_is_copied_and_neither_staged_nor_shown_to_a_model(
    bench: Bench, git: Git
) -> None:
    put(bench.repository, {".gitignore": ".env\n", ".env.example": "KEY=\n"})
    git(bench.repository, "add", ".")
    git(bench.repository, "commit", "-qm", "ignore")
    git(bench.repository, "push", "-q", "origin", "main")
    put(bench.repository, {".env": "KEY=of-the-owner-alone\n"})
    named = wanted(".env", source_status="ignored", category="secret")
    bench.on("setup_plan", reply(readiness=NEEDED, workspace_inputs=[named], workspace_probes=[]))
    await run(bench)
    assert (bench.tree / ".env").read_text() == "KEY=of-the-owner-alone\n"
    assert ".env" not in git(bench.tree, "status", "--porcelain")
    assert [task for task in bench.desk.tasks if "of-the-owner-alone" in task.brief.text] == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("README.md", "README.md is a tracked file and is never overwritten"),
        ("missing.cfg", "there is no such file in the checkout"),
        ("link.cfg", "it is, or lies behind, a symbolic link"),
        ("ignored.cfg", "it is ignored, not untracked"),
    ],
)
async def test_inputs_that_break_the_rules_are_refused_by_name(bench: Bench, path: str, why: str) -> None:
    put(bench.repository, {".gitignore": "__pycache__/\nignored.cfg\n", "ignored.cfg": "x"})
    (bench.repository / "link.cfg").symlink_to("/etc/passwd")
    bench.on("setup_plan", reply(readiness=NEEDED, workspace_inputs=[wanted(path)]))
    await run(bench)
    (gate,) = bench.gates()
    assert (gate["detail"]["code"], gate["title"]) == ("WORKSPACE_INPUT_REFUSED", f"{path}: {why}")


# --- preflight ------------------------------------------------------------------------------------------------------
class Here:
    """An agent that is installed and signed in, or not."""

    can = Capabilities()
    auth_paths: tuple[Path, ...] = ()

    def __init__(self, *, signed_in: bool | None = True) -> None:
        self.name = "scripted"
        self.signed_in = signed_in

    async def detect(self) -> Installed | None:
        return Installed(Path("/bin/true"), "1.0", signed_in=self.signed_in)


def preflight(bench: Bench, agent: Here | None = None) -> PreflightNode:
    def agents(seat: Seat) -> Any:
        if agent is None:
            raise Unavailable(f"no agent {seat.agent!r}", next="install it")
        return agent

    return PreflightNode(trees=bench.trees, agents=agents, sandbox=lambda _name: HostSandbox(), **bench.outside)


class Approver(Seeder):
    """Planning, with the approval of the beads by a person."""

    async def visit(self, v: Any, cfg: Any, /) -> Any:
        from beadmill.domain.values import SYSTEM, GateKind, GateRequest

        outcome = await super().visit(v, cfg)
        (beads,) = [d for d in self.documents if isinstance(d, Beads)]
        ref = await v.put(beads, by=SYSTEM)
        await v.ask("approve", GateRequest(GateKind.APPROVE, "beads", ("approve",), shows=(ref,), auto="approve"))
        return outcome


async def test_a_ready_run_passes_its_preflight(bench: Bench) -> None:
    bench.nodes |= {"seed": Approver(planned()), "preflight": preflight(bench, Here())}
    await run(bench, chain("preflight"))
    report = bench.last(PreflightReport)
    assert bench.visits() == {"seed.1": "ok", "preflight.1": "ok"}
    assert {check.name: check.result for check in report.checks} == {
        "agent scripted/a": "pass", "agent scripted/b": "pass", "sandbox host": "warning",
        "beads and their graph": "pass", "approval of the beads": "pass", "worktree": "pass", "clean worktree": "pass",
        "base branch": "pass", "git identity": "pass", "submodules": "pass", "LFS": "pass", "sparse checkout": "pass",
        "history": "pass", "env files": "pass", "hooks": "pass", "forge local": "pass",
    }  # fmt: skip


async def test_a_failed_preflight_names_every_failing_check_and_may_be_retried(bench: Bench) -> None:
    here = Here(signed_in=False)
    bench.nodes |= {"seed": Seeder(planned()), "preflight": preflight(bench, here)}
    await bench.start(chain("preflight"))
    async with bench.daemon():
        gate = await bench.gate()
        assert gate["detail"]["code"] == "PREFLIGHT_FAILED"
        named = [check["name"] for check in gate["detail"]["details"]["checks"]]
        assert named == ["agent scripted/a", "agent scripted/b", "approval of the beads"]
        here.signed_in = True
        await bench.answer("retry")
        await bench.until(lambda: len(bench.gates()) == 1 and bench.gates()[0]["id"] != gate["id"])
    assert [check["name"] for check in bench.gates()[0]["detail"]["details"]["checks"]] == ["approval of the beads"]


async def test_c08_a_submodule_that_cannot_be_had_stops_before_coding_and_goes_on_when_it_can(bench: Bench) -> None:
    inner = with_submodule(bench.repository)
    away = inner.rename(inner.with_name("away"))
    bench.nodes |= {"seed": Approver(planned()), "preflight": preflight(bench, Here())}
    await bench.start(chain("preflight"))
    async with bench.daemon():
        gate = await bench.gate()
        (check,) = gate["detail"]["details"]["checks"]
        assert (check["name"], check["message"].partition(":")[0]) == ("submodules", "vendor/sub from ../inner")
        away.rename(inner)
        await bench.answer("retry")
        await bench.until(lambda: bench.run_state() == "completed")
    assert (bench.tree / "vendor/sub/file").read_text() == "needed\n"


@pytest.mark.parametrize(("code", "result"), [(2, "fail"), (0, "pass")])
async def test_c18_preflight_makes_a_real_signature_where_commits_are_signed(
    bench: Bench, git: Git, tmp_path: Path, *, code: int, result: str
) -> None:
    signer = tmp_path / "signer"
    signer.write_text(f"#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2; echo signature; exit {code}\n")
    signer.chmod(0o755)
    git(bench.repository, "config", "commit.gpgSign", "true")
    git(bench.repository, "config", "gpg.program", str(signer))
    bench.nodes |= {"seed": Approver(planned()), "preflight": preflight(bench, Here())}
    await run(bench, chain("preflight"))
    (found,) = [check for check in bench.last(PreflightReport).checks if check.name == "commit signing"]
    assert found.result == result


async def test_c16_preflight_says_that_hooks_do_not_run(bench: Bench, git: Git) -> None:
    put(bench.repository, {".husky/pre-commit": "#!/bin/sh\nexit 1\n"})
    (bench.repository / ".husky/pre-commit").chmod(0o755)
    git(bench.repository, "config", "core.hooksPath", ".husky")
    bench.nodes |= {"seed": Approver(planned()), "preflight": preflight(bench, Here())}
    await run(bench, chain("preflight"))
    (found,) = [check for check in bench.last(PreflightReport).checks if check.name == "hooks"]
    assert (found.result, found.message.partition(" in ")[0]) == ("warning", "pre-commit")


async def test_who_plans_the_setup_is_told_what_the_worktree_lacks(bench: Bench, git: Git) -> None:
    (bench.repository / ".env").write_text("KEY=hidden-value\n")
    bench.on("setup_plan", reply())
    await run(bench)
    (brief,) = bench.desk.briefs("setup_plan")
    assert "env files: your checkout has .env, which git does not hold; the worktree starts without" in brief
    assert "hidden-value" not in brief


class Serving(Here):
    """An agent that is a server."""

    server_idle = 60.0


@pytest.mark.parametrize(("agent", "failed"), [(Here(), False), (Serving(), True)])
async def test_an_allow_list_and_an_agent_that_is_a_server_fail_the_preflight(
    bench: Bench, agent: Here, *, failed: bool
) -> None:
    bench.nodes |= {"seed": Approver(planned()), "preflight": preflight(bench, agent)}
    await bench.start(chain("preflight"), network="allow-list")
    async with bench.daemon():
        gate = await bench.gate()
    named = [check["name"] for check in gate["detail"]["details"]["checks"] if check["result"] == "fail"]
    agents = ["agent scripted/a", "agent scripted/b"] if failed else []
    assert named == [*agents, "sandbox host"]  # the host holds no allow-list either


async def test_c90_preflight_names_an_image_that_is_absent_and_how_to_load_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A podman that has no image and reaches no registry; that it pulls nothing is among its arguments."""
    podman = tmp_path / "podman"
    podman.write_text('#!/bin/sh\n[ "$1" = --version ] && echo podman version 5.0.0 && exit; exit 125\n')
    podman.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("BEADMILL_TRUSTED_EXECUTABLE_DIRS", str(tmp_path))
    contained = preflight(bench, Here())
    contained.sandbox = choice.load
    bench.nodes |= {"seed": Approver(planned()), "preflight": contained}
    await bench.start(chain("preflight"), sandbox="container", sandbox_image="tools:1")
    async with bench.daemon():
        gate = await bench.gate()
    (failed,) = [check for check in gate["detail"]["details"]["checks"] if check["result"] == "fail"]
    assert (failed["name"], failed["message"].partition(";")[0]) == (
        "sandbox container",
        "no container: the image tools:1 is not on this machine",
    )
    assert "`podman load -i <file>`" in failed["message"]


async def test_a_dirty_worktree_and_a_broken_graph_fail_the_preflight(bench: Bench) -> None:
    loop = bead(dependencies={"blocked_by": ("greet",)})
    bench.nodes |= {"seed": Approver(planned(loop)), "preflight": preflight(bench, Here())}
    await bench.trees.open(str(bench.repository), str(bench.workspace), branch=f"beadmill/{KEY}", base="")
    put(bench.tree, {"stray.py": "x"})
    await run(bench, chain("preflight"))
    failed = {check.name: check.message for check in bench.last(PreflightReport).checks if check.result == "fail"}
    assert failed == {
        "beads and their graph": "greet: is blocked by itself",
        "clean worktree": "uncommitted changes: stray.py",
    }


# --- script and gate ------------------------------------------------------------------------------------------------
HELLO = """
title: Hello
start: script
nodes:
  - {id: script, kind: script, config: {script: SCRIPT}, ends: [failed]}
  - {id: gate, kind: gate, config: {title: Right?}, ends: [approved]}
edges:
  - {from: script, outcome: ok, to: gate}
  - {from: gate, outcome: rejected, to: script, kind: rework, max_visits: 3}
"""


async def test_a_script_runs_in_the_workspace_and_a_gate_asks(bench: Bench) -> None:
    bench.nodes |= {"script": ScriptNode(trees=bench.trees, ledger=bench.parts["ledger"]), "gate": GateNode()}
    await bench.start(HELLO.replace("SCRIPT", "cat README.md"))
    async with bench.daemon():
        await bench.answer("rejected")
        await bench.answer("approved")
        await bench.until(lambda: bench.run_state() == "completed")
    assert bench.visits() == {"script.1": "superseded", "gate.1": "superseded", "script.2": "ok", "gate.2": "approved"}
    outputs = bench.rows(sa.select(tables.checks.c.output))
    assert [row[0].strip() for row in outputs] == ["sample", "sample"]


async def test_a_script_that_fails_ends_by_its_failed_edge(bench: Bench) -> None:
    bench.nodes["script"] = ScriptNode(trees=bench.trees, ledger=bench.parts["ledger"])
    bench.nodes["gate"] = GateNode()
    await run(bench, HELLO.replace("SCRIPT", "exit 2"))
    assert bench.visits() == {"script.1": "failed"}
