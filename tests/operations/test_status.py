"""What `beadmill status` says beside the sandbox (test_sandbox_choice.py)."""

from __future__ import annotations

import json
from contextlib import ExitStack

from house_for_tests import OWNER

from beadmill.operations import status, tickets, views
from beadmill.operations.ports import Ports
from beadmill.processes import folder
from beadmill.processes.session import folder_name


async def test_status_names_the_tickets_whose_agents_keep_a_server(ports: Ports, project: views.ProjectView) -> None:
    made = await tickets.create(ports, "API", title="One", sop="hello", description="d", actor=OWNER)
    run = (await tickets.start(ports, made.key, actor=OWNER)).run
    with ExitStack() as runners:  # a runner holds the lock of its folder for as long as it lives
        for token in (
            f"{run}/server/opencode-read/1",
            f"{run}/server/opencode-write/1",
            "gone-r1/server/opencode-read/1",
        ):
            place = ports.settings.home / "sessions" / folder_name(token)
            place.mkdir()
            (place / "spec.json").write_text(json.dumps({"token": token, "mark": "m"}))
            assert runners.enter_context(folder.lock(place))
        serving = (await status.show(ports, actor=OWNER)).servers
    assert (serving, (await status.show(ports, actor=OWNER)).servers) == (("API-1", "gone-r1"), ())
