"""What every forge must do. An implementation joins by a ``World`` of its own in ``WORLDS``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from beadmill.errors import Conflict, NotFound, Stale
from beadmill.forges.contract import ChangeDraft, ChangeRef, ChangeStatus, Forge
from beadmill.forges.local import LocalForge

Git = Callable[..., str]


class World(Protocol):
    """A forge with an origin that a test can push to by plain git."""

    forge: Forge
    checkout: Path

    def push(self, branch: str, files: dict[str, str], *, onto: str = "main") -> str: ...
    def base(self) -> str: ...


class LocalWorld:
    """Branches are made in a second clone, as another person would."""

    def __init__(self, repo: Path, git: Git) -> None:
        self.forge: Forge = LocalForge(repo)
        self.checkout = repo
        self._git = git
        self._clone = repo.parent / "colleague"
        git(repo.parent, "clone", "-q", str(repo.parent / "origin.git"), "colleague")

    def push(self, branch: str, files: dict[str, str], *, onto: str = "main") -> str:
        self._git(self._clone, "fetch", "-q")
        self._git(self._clone, "switch", "-qC", branch, f"origin/{onto}")
        for name, text in files.items():
            (self._clone / name).write_text(text)
            self._git(self._clone, "add", name)
            self._git(self._clone, "commit", "-qm", f"add {name}")
        self._git(self._clone, "push", "-qf", "origin", f"HEAD:refs/heads/{branch}")
        return self._git(self._clone, "rev-parse", "HEAD")

    def base(self) -> str:
        return self._git(self.checkout.parent / "origin.git", "rev-parse", "main")


WORLDS: dict[str, Callable[[Path, Git], World]] = {"local": LocalWorld}


@pytest.fixture(params=sorted(WORLDS))
def world(request: pytest.FixtureRequest, repo: Path, git: Git) -> World:
    return WORLDS[request.param](repo, git)


@pytest.fixture
def draft(world: World) -> ChangeDraft:
    head = world.push("beadmill/DEMO-1", {"a": "a\n", "b": "b\n"})
    return ChangeDraft("Add a ü", "Body 中文\n\nsecond line", "beadmill/DEMO-1", "main", head)


async def test_a_reachable_forge_says_so(world: World) -> None:
    assert (await world.forge.probe()).ok


async def test_a_new_change_is_a_draft_and_is_found_by_its_branch(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    assert (change.status, change.title, change.branch, change.base, change.head) == (
        ChangeStatus.DRAFT,
        draft.title,
        draft.branch,
        "main",
        draft.head,
    )
    assert await world.forge.find(draft.branch) == change
    assert (await world.forge.read(change.ref)).body == draft.body


async def test_putting_twice_is_one_change(world: World, draft: ChangeDraft) -> None:
    assert await world.forge.put(draft) == await world.forge.put(draft)


async def test_putting_again_updates_the_open_change(world: World, draft: ChangeDraft) -> None:
    first = await world.forge.put(draft)
    again = await world.forge.put(replace(draft, title="Other", body="other", draft=False))
    assert again == replace(first, title="Other", status=ChangeStatus.OPEN)
    assert (await world.forge.read(first.ref)).body == "other"


async def test_a_draft_of_another_head_is_a_conflict(world: World, draft: ChangeDraft) -> None:
    world.push(draft.branch, {"c": "c\n"}, onto=draft.branch)
    with pytest.raises(Conflict) as caught:
        await world.forge.put(draft)
    assert caught.value.details["expected"] == draft.head
    assert await world.forge.find(draft.branch) is None


async def test_a_branch_without_a_change_finds_nothing(world: World) -> None:
    assert await world.forge.find("beadmill/nothing") is None


async def test_an_unknown_change_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        await world.forge.read(ChangeRef(99))


async def test_a_branch_with_nothing_new_is_a_conflict(world: World) -> None:
    head = world.push("beadmill/empty", {})
    with pytest.raises(Conflict) as caught:
        await world.forge.put(ChangeDraft("t", "b", "beadmill/empty", "main", head))
    assert caught.value.code == "NOTHING_TO_MERGE"


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_a_merge_moves_the_base_to_the_merge(world: World, draft: ChangeDraft, *, method: str) -> None:
    world.push("main", {"unrelated": "u\n"})
    change = await world.forge.put(draft)
    merged = await world.forge.merge(change.ref, expected_head=draft.head, method=method)
    assert (merged.sha, merged.base, merged.method) == (world.base(), "main", method)
    state = await world.forge.read(change.ref)
    assert (state.change.status, state.merge_sha, state.change.head) == (ChangeStatus.MERGED, merged.sha, draft.head)


async def test_merging_twice_is_one_merge(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    first = await world.forge.merge(change.ref, expected_head=draft.head)
    assert await world.forge.merge(change.ref, expected_head=draft.head) == first


async def test_a_head_that_moved_after_approval_is_stale(world: World, draft: ChangeDraft) -> None:
    change, base = await world.forge.put(draft), world.base()
    moved = world.push(draft.branch, {"c": "c\n"}, onto=draft.branch)
    with pytest.raises(Stale) as caught:
        await world.forge.merge(change.ref, expected_head=draft.head)
    assert caught.value.details == {"expected": draft.head, "found": moved}
    assert world.base() == base


async def test_a_conflicting_merge_names_the_paths_and_merges_nothing(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    world.push("main", {"a": "theirs\n"})
    base = world.base()
    with pytest.raises(Conflict) as caught:
        await world.forge.merge(change.ref, expected_head=draft.head)
    assert caught.value.details == {"paths": ["a"]}
    assert (world.base(), (await world.forge.read(change.ref)).change.status) == (base, ChangeStatus.DRAFT)


async def test_a_closed_change_stays_closed_and_keeps_its_branch(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    await world.forge.close(change.ref, note="not wanted")
    await world.forge.close(change.ref, note="again")
    assert (await world.forge.put(draft)) == replace(change, status=ChangeStatus.CLOSED)
    with pytest.raises(Conflict):
        await world.forge.merge(change.ref, expected_head=draft.head)


async def test_new_work_after_a_close_is_a_new_change(world: World, draft: ChangeDraft) -> None:
    old = await world.forge.put(draft)
    await world.forge.close(old.ref, note="not wanted")
    head = world.push(draft.branch, {"c": "c\n"}, onto=draft.branch)
    new = await world.forge.put(replace(draft, head=head))
    assert new.ref != old.ref
    assert await world.forge.find(draft.branch) == new


async def test_a_merged_change_cannot_be_closed(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    await world.forge.merge(change.ref, expected_head=draft.head)
    with pytest.raises(Conflict) as caught:
        await world.forge.close(change.ref, note="late")
    assert caught.value.code == "CHANGE_MERGED"


async def test_two_branches_are_two_changes(world: World, draft: ChangeDraft) -> None:
    head = world.push("beadmill/DEMO-2", {"z": "z\n"})
    first = await world.forge.put(draft)
    second = await world.forge.put(ChangeDraft("t", "b", "beadmill/DEMO-2", "main", head))
    assert (await world.forge.find(draft.branch), await world.forge.find("beadmill/DEMO-2")) == (first, second)


async def test_there_are_no_comments_before_anybody_wrote_one(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    assert [comment async for comment in world.forge.comments(change.ref)] == []
