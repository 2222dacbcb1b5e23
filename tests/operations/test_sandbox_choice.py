"""A start decides which sandbox a run gets, freezes it and shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from house_for_tests import OWNER

from beadmill.errors import Unavailable
from beadmill.operations import settings, status, tickets, views
from beadmill.operations.ports import Ports
from beadmill.settings import RunSettings

HELLO: dict[str, Any] = {"sop": "hello", "description": "d"}


async def frozen(ports: Ports, **overrides: object) -> str:
    made = await tickets.create(ports, "API", title="One", overrides=overrides, actor=OWNER, **HELLO)
    shown = await tickets.start(ports, made.key, actor=OWNER)
    assert shown.current is not None
    return str(shown.current.settings["sandbox"])


@pytest.mark.sandbox
async def test_a_start_freezes_what_auto_came_to(ports: Ports, project: views.ProjectView) -> None:
    assert await frozen(ports) == "bubblewrap"


async def test_without_bubblewrap_the_run_says_host(
    ports: Ports, project: views.ProjectView, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await frozen(ports) == "host"


async def test_a_named_sandbox_that_is_missing_starts_nothing(
    ports: Ports, project: views.ProjectView, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable) as caught:
        await frozen(ports, sandbox="bubblewrap")
    assert (caught.value.code, (await tickets.show(ports, "API-1", actor=OWNER)).state) == ("SANDBOX_MISSING", "draft")


async def test_the_network_is_not_off_without_a_sandbox(ports: Ports, project: views.ProjectView) -> None:
    with pytest.raises(Unavailable) as caught:
        await frozen(ports, sandbox="host", network="off")
    assert caught.value.code == "SANDBOX_POLICY"


async def test_status_says_what_stands_in_the_way(
    ports: Ports, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (line,) = [h for h in (await status.show(ports, actor=OWNER)).health if h.name == "sandbox"]
    assert (line.ok, line.message.startswith("host: No sandbox"), "bwrap was not found" in line.next) == (
        False, True, True,
    )  # fmt: skip


async def test_status_asks_for_what_the_settings_want(ports: Ports) -> None:
    asked = []

    async def choose(wish: str, network: str = "on", *, image: str = "") -> object:
        asked.append((wish, network, image))
        raise Unavailable("no luck", code="SANDBOX_MISSING", next="mend it")

    change = {"sandbox": "container", "network": "off", "sandbox_image": "tools:1"}
    await settings.change(ports, change, actor=OWNER)
    view = await status.show(replace(ports, choose=choose), actor=OWNER)  # type: ignore[arg-type]
    assert (asked, [(h.ok, h.next) for h in view.health if h.name == "sandbox"]) == (
        [("container", "off", "tools:1")],
        [(False, "mend it")],
    )


def test_a_run_that_froze_the_host_stays_there() -> None:
    assert RunSettings.thawed({"sandbox": "host"}).sandbox == "host"
