"""The real npm against a registry on this machine: into our folder, live, and whole or not at all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from registry_for_tests import PROGRAM, Registry, registry

from beadmill.agents import _install
from beadmill.agents.contract import quiet
from beadmill.errors import Unavailable
from beadmill.processes import executables, procs

TOOL = "@beadmill-test/tool"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry with one tool, and an npm that knows no other."""
    with registry() as made:
        made.add(TOOL, {"bin/tool": PROGRAM}, bin={"tool": "bin/tool"})
        monkeypatch.setenv("npm_config_registry", made.url)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
        monkeypatch.setenv("npm_config_fetch_retries", "0")
        yield made


async def failure(folder: Path, package: str = TOOL) -> Unavailable:
    with pytest.raises(Unavailable) as failed:
        await _install.npm(package, folder)
    return failed.value


async def test_a_package_is_installed_into_our_folder_and_found_there(tmp_path: Path, shop: Registry) -> None:
    said: list[str] = []
    folder = tmp_path / "agents" / "tool"
    programs = await _install.npm(TOOL, folder, say=said.append)
    found = _install.find("tool", folder, path="")
    assert found == folder / "lib/node_modules/@beadmill-test/tool/bin/tool"
    assert (await executables.ask([str(found)], env=os.environ))[1] == "tool 1.2.3\n"
    assert programs == folder / "bin"
    assert said[0] == f"$ npm install --global --prefix {folder} {TOOL}"
    assert any(f"GET 200 {shop.url}" in line for line in said)


async def test_the_version_asked_for_is_the_one_installed(tmp_path: Path, shop: Registry) -> None:
    await _install.npm(TOOL, tmp_path / "tool", version="1.2.3")
    with pytest.raises(Unavailable, match=r"No matching version found for @beadmill-test/tool@9.9.9"):
        await _install.npm(TOOL, tmp_path / "tool", version="9.9.9")


async def test_a_failed_install_keeps_what_was_there_and_leaves_nothing_else(tmp_path: Path, shop: Registry) -> None:
    folder = tmp_path / "agents" / "tool"
    await _install.npm(TOOL, folder)
    failed = await failure(folder, "@beadmill-test/other")
    assert failed.kept == "what was installed before"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["tool"]
    assert (folder / "bin/tool").exists()


async def test_a_package_that_is_not_there_is_said_with_the_command_and_its_last_lines(
    tmp_path: Path, shop: Registry
) -> None:
    failed = await failure(tmp_path / "tool", "@beadmill-test/other")
    command = f"npm install --global --prefix {tmp_path}/tool @beadmill-test/other"
    assert failed.message.startswith(f"{command}: failed with 1: code E404")
    assert failed.details["command"] == command
    assert any("404" in line for line in failed.details["tail"])
    assert "no such package" in failed.next


async def test_a_registry_that_cannot_be_reached_is_said(
    tmp_path: Path, shop: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    failed = await failure(tmp_path / "tool")
    assert (
        failed.next == "the registry cannot be reached: look at the network, HTTPS_PROXY and `npm config get registry`"
    )


async def test_a_machine_without_npm_is_told_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    failed = await failure(tmp_path / "tool")
    assert failed.message.endswith("npm cannot be started: No such file or directory")
    assert failed.next.startswith("install Node.js")


async def test_a_cancelled_install_ends_npm_and_leaves_nothing(tmp_path: Path, shop: Registry) -> None:
    shop.go.clear()
    folder = tmp_path / "agents" / "tool"
    before = set(procs.below((os.getpid(),), procs.table()))
    task = asyncio.create_task(_install.npm(TOOL, folder))
    await asyncio.to_thread(shop.asked.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set(procs.below((os.getpid(),), procs.table())) - before == set()
    assert list(folder.parent.iterdir()) == []


async def test_secrets_in_what_npm_says_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    argv = ("sh", "-c", "echo GET http://me:a-long-password@127.0.0.1/tool; echo wrong >&2; exit 3")
    code, tail = await executables.stream(argv, env=os.environ, say=said.append, patience=20)
    assert (code, said) == (3, ["GET http://[redacted]@127.0.0.1/tool", "wrong"])
    assert tail == tuple(said)


async def test_an_install_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match=r"sh was not done in 0\.2 s"):
        await executables.stream(("sh", "-c", "sleep 60"), env=os.environ, say=quiet, patience=0.2)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("npm error code ENOSPC\nnpm error ENOSPC: no space left on device, write", "free some disk space"),
        (
            "npm error code EACCES\nnpm error path /srv/agents\nnpm error EACCES: permission denied",
            "give yourself the right",
        ),
        ("npm error code SELF_SIGNED_CERT_IN_CHAIN\nnpm error request to https://x failed", "name your certificates"),
        ("npm error code E401\nnpm error Unable to authenticate", "the registry refuses you"),
        ("npm error code EBADPLATFORM\nnpm error Unsupported platform", "this registry has no such package"),
        ("npm error code ENOTFOUND\nnpm error network request to https://x failed", "the registry cannot be reached"),
        ("npm error code ENOTEMPTY", "run `npm cache verify`"),
        ("/usr/bin/env: 'node': No such file or directory", "install Node.js 20"),
        ("something new", "run the command yourself"),
    ],
)
def test_every_known_failure_has_its_remedy(tmp_path: Path, said: str, remedy: str) -> None:
    assert _install._failed("npm install x", "failed with 1", tmp_path, said.splitlines()).next.startswith(remedy)
