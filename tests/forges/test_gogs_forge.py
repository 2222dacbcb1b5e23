"""What only Gogs does: it has no pull requests, and says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.errors import Refused
from beadmill.forges import credentials
from beadmill.forges.contract import ChangeDraft
from beadmill.forges.gogs import GogsForge
from tests.forges.worlds import World, gogs

Git = Callable[..., str]


async def test_the_probe_says_what_gogs_cannot(repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    with gogs(repo, git, monkeypatch) as world:
        health = await world.forge.probe()
    assert (health.ok, "no API for pull requests" in health.message) == (True, True)
    assert (health.detail["login"], health.detail["push"], health.detail["drafts"]) == ("robot", "yes", "no")


async def put(world: World) -> tuple[ChangeDraft, str]:
    head = world.push("beadmill/G-1", {"g": "g\n"})
    draft = ChangeDraft("Title", "", "beadmill/G-1", "main", head)
    return draft, (await world.forge.put(draft)).url


async def test_the_change_names_the_page_where_a_person_opens_it(
    repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gogs(repo, git, monkeypatch) as world:
        _, url = await put(world)
    assert url.endswith("/team/sample/compare/main...beadmill/G-1")


async def test_a_server_that_protects_its_base_refuses_the_merge(
    repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = repo.parent / "origin.git" / "hooks" / "pre-receive"
    with gogs(repo, git, monkeypatch) as world:
        draft, _ = await put(world)
        hook.write_text("#!/bin/sh\necho main is protected >&2\nexit 1\n")
        hook.chmod(0o755)
        change = await world.forge.find(draft.branch)
        assert change is not None
        base = world.base()
        with pytest.raises(Refused, match="main is protected") as caught:
            await world.forge.merge(change.ref, expected_head=draft.head)
        assert (caught.value.code, world.base()) == ("MERGE_REFUSED", base)


async def test_without_a_token_and_a_sign_in_the_probe_says_which_host_wants_one(
    repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gogs(repo, git, monkeypatch) as world:
        host = git(repo, "remote", "get-url", "origin").split("/")[2]
        monkeypatch.delenv(credentials.variable(host))
        health = await GogsForge(world.checkout).probe()
    assert (health.ok, f"no credentials for the remote 'origin' at {host}" in health.message) == (False, True)
