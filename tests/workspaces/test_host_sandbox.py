from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from beadmill.errors import Unavailable
from beadmill.processes.box import Launch, Sandbox
from beadmill.processes.spec import Policy
from beadmill.workspaces.sandboxes.host import HostSandbox

SRC = Path(__file__).parents[2] / "src"


async def test_the_host_runs_what_it_is_given(tmp_path: Path) -> None:
    sandbox: Sandbox = HostSandbox()
    box = await sandbox.open(tmp_path, Policy())
    assert box.wrap(["a", "b"], cwd=tmp_path, env={"X": "1"}) == Launch(("a", "b"), tmp_path, {"X": "1"})
    await box.close()
    await box.close()


async def test_the_host_says_loudly_that_it_holds_nothing_back() -> None:
    health = await HostSandbox().probe()
    assert (health.ok, health.message.startswith("No sandbox:")) == (True, True)


@pytest.mark.parametrize("network", ["off", "allow-list"])
async def test_a_network_policy_that_the_host_cannot_hold_is_refused(
    tmp_path: Path, *, network: Literal["off", "allow-list"]
) -> None:
    with pytest.raises(Unavailable) as caught:
        await HostSandbox().open(tmp_path, Policy(network=network))
    assert caught.value.code == "SANDBOX_POLICY"


async def test_a_workspace_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        await HostSandbox().open(tmp_path / "gone", Policy())
    assert caught.value.code == "WORKSPACE_GONE"


def test_the_runner_can_load_it_with_the_standard_library_alone() -> None:
    code = f"import sys; sys.path.insert(0, {str(SRC)!r}); import beadmill.workspaces.sandboxes.host"
    assert subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False).returncode == 0
