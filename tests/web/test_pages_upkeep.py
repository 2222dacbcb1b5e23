"""Kept states and free disk space on the screen."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import httpx2
import pytest
from house_for_tests import OWNER, Starter, until
from pages_for_tests import page, text

from beadmill.operations import runs, tickets, undo
from beadmill.operations.ports import Ports
from beadmill.workspaces.tree import Tree

pytestmark = pytest.mark.usefixtures("project")
KEPT = "/tickets/API-1/undo/1"


@pytest.fixture
async def tree(ports: Ports, started: Starter) -> Tree:
    """The worktree of a paused ticket, reset once."""
    work = (await started()).current.work
    await runs.pause(ports, "API-1-r1", actor=OWNER)
    tree = await ports.trees.open(work["repository"], work["workspace"], branch=work["branch"], base="main")
    (Path(tree.path) / "draft.txt").write_text("half\n")
    await ports.trees.reset(tree, tree.base_commit, why="try 1 failed")
    return tree


async def canceled(ports: Ports) -> None:
    await tickets.cancel(ports, "API-1", actor=OWNER)
    await until(ports, "API-1", lambda found: found.state == "canceled")


async def test_the_history_lists_what_was_kept_and_each_shows_its_patch(
    signed_in: httpx2.AsyncClient, tree: Tree
) -> None:
    listed, shown = await page(signed_in, "/tickets/API-1/history"), await page(signed_in, KEPT)
    assert f'<a href="{KEPT}">try 1 failed</a>' in listed
    assert (re.findall(r'class="plus">([^<]+)', shown)[0], re.findall(r">(half)<", shown)[0]) == ("+1", "half")


async def test_a_button_brings_it_back(signed_in: httpx2.AsyncClient, tree: Tree, ports: Ports) -> None:
    answer = await signed_in.post(f"{KEPT}/restore", data={"key": "k"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/tickets/API-1/history#undo")
    assert [f.path for f in await ports.trees.status(tree)] == ["draft.txt"]


async def test_refused_the_same_page_says_why_and_offers_the_branch(
    signed_in: httpx2.AsyncClient, tree: Tree, ports: Ports
) -> None:
    await runs.resume(ports, "API-1-r1", actor=OWNER)
    answer = await signed_in.post(f"{KEPT}/restore", data={"key": "k"})
    assert (answer.status_code, "works in that folder" in text(answer.text)) == (409, True)
    made = await signed_in.post(f"{KEPT}/restore", data={"key": "b", "branch": "rescued"})
    assert made.headers["location"] == f"{KEPT}?branch=rescued"


def boxes(shown: str) -> list[str]:
    return [unescape(value) for value in re.findall(r'name="item" value="([^"]+)"', shown)]


async def test_what_can_go_is_ticked_and_goes_and_is_reported(
    signed_in: httpx2.AsyncClient, tree: Tree, ports: Ports
) -> None:
    await canceled(ports)
    shown = await page(signed_in, "/settings/space")
    assert [box.partition(" ")[2] for box in boxes(shown)] == ["worktree:API-1", "workspace:API-1"]
    answer = await signed_in.post("/settings/space", data={"item": boxes(shown)})
    assert "Nothing is left over" in text(answer.text)
    assert "worktree:API-1" in answer.text.partition('id="report"')[2]
    assert len(await undo.listing(ports, "API-1", actor=OWNER)) == 1


async def test_what_is_held_nowhere_else_is_named_and_goes_only_when_ticked(
    signed_in: httpx2.AsyncClient, tree: Tree, ports: Ports
) -> None:
    (Path(tree.path) / ".gitignore").write_text(".env\n")
    env = Path(tree.path) / ".env"
    env.write_text("mine")
    await canceled(ports)
    shown = await page(signed_in, "/settings/space")
    assert ".env (ignored by git)" in text(shown)
    (box,) = [box for box in boxes(shown) if box.endswith("worktree:API-1")]
    await signed_in.post("/settings/space", data={"item": box})
    assert env.exists()
    await signed_in.post("/settings/space", data={"item": box, "lose": "1"})
    assert not env.exists()


async def test_a_ticket_at_work_stands_among_what_stays(signed_in: httpx2.AsyncClient, tree: Tree) -> None:
    assert "API-1 has not ended" in text(await page(signed_in, "/settings/space"))
