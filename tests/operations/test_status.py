"""What `beadmill status` says beside the sandbox (test_sandbox_choice.py)."""

from __future__ import annotations

import pytest
from house_for_tests import OWNER

from beadmill.operations import status, tickets, views
from beadmill.operations.ports import Ports
from beadmill.processes.servers import Servers


async def test_status_names_the_tickets_whose_agents_keep_a_server(
    ports: Ports, project: views.ProjectView, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await tickets.create(ports, "API", title="One", sop="hello", description="d", actor=OWNER)
    run = (await tickets.start(ports, made.key, actor=OWNER)).run
    assert run is not None
    monkeypatch.setattr(Servers, "runs", lambda _: {run, "of-an-older-home"})
    assert (await status.show(ports, actor=OWNER)).servers == ("API-1", "of-an-older-home")
