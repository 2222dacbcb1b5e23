"""What every forge must do. An implementation joins by a ``World`` of its own (worlds.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from beadmill.errors import Conflict, NotFound, Refused, Stale
from beadmill.forges.contract import METHODS, ChangeDraft, ChangeRef, ChangeStatus
from tests.forges.worlds import WORLDS, World, named

Git = Callable[..., str]


@pytest.fixture(params=named(WORLDS))
def world(request: pytest.FixtureRequest, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with WORLDS[request.param](repo, git, monkeypatch) as made:
        yield made


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


async def test_c66_putting_twice_is_one_change(world: World, draft: ChangeDraft) -> None:
    assert await world.forge.put(draft) == await world.forge.put(draft)


async def test_putting_again_updates_the_open_change(world: World, draft: ChangeDraft) -> None:
    first = await world.forge.put(draft)
    again = await world.forge.put(replace(draft, title="Other", body="other", draft=False))
    assert again == replace(first, title="Other", status=ChangeStatus.OPEN)
    assert (await world.forge.read(first.ref)).body == "other"


async def test_c69_a_draft_of_another_head_is_a_conflict(world: World, draft: ChangeDraft) -> None:
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


@pytest.mark.parametrize("method", METHODS)
async def test_a_merge_moves_the_base_to_the_merge(world: World, draft: ChangeDraft, *, method: str) -> None:
    if method not in world.methods:
        pytest.skip(f"{world.forge.name} does not {method} by default")
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


async def test_c70_a_conflicting_merge_is_refused_and_nothing_is_done(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    world.push("main", {"a": "theirs\n"})
    base = world.base()
    with pytest.raises(Conflict) as caught:
        await world.forge.merge(change.ref, expected_head=draft.head)
    assert (caught.value.code, caught.value.kept) == ("MERGE_CONFLICT", "Nothing was merged.")
    assert (world.base(), (await world.forge.read(change.ref)).change.status) == (base, ChangeStatus.DRAFT)


async def test_c67_a_closed_change_stays_closed_and_keeps_its_branch(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    await world.forge.close(change.ref, note="not wanted")
    await world.forge.close(change.ref, note="again")
    assert (await world.forge.put(draft)) == replace(change, status=ChangeStatus.CLOSED)
    with pytest.raises(Conflict):
        await world.forge.merge(change.ref, expected_head=draft.head)


async def test_c67_new_work_after_a_close_is_a_new_change(world: World, draft: ChangeDraft) -> None:
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


async def test_c67_new_work_after_a_close_asks_when_it_is_told_to(world: World, draft: ChangeDraft) -> None:
    old = await world.forge.put(draft)
    await world.forge.close(old.ref, note="")
    head = world.push(draft.branch, {"c": "c\n"}, onto=draft.branch)
    with pytest.raises(Conflict) as caught:
        await world.forge.put(replace(draft, head=head, after_close="ask"))
    asked = (caught.value.code, caught.value.details["number"], caught.value.details["choices"])
    assert asked == ("CHANGE_CLOSED", old.ref.number, ["reopen", "new"])
    again = await world.forge.put(replace(draft, head=head, after_close="reopen"))
    assert (again.ref, again.head, (await world.forge.read(old.ref)).change.head) == (old.ref, head, head)


async def test_a_closed_change_is_opened_again_once(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(replace(draft, draft=False))
    await world.forge.close(change.ref, note="")
    assert await world.forge.reopen(change.ref) == change
    assert await world.forge.reopen(change.ref) == change


async def test_a_merged_change_is_not_opened_again(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    await world.forge.merge(change.ref, expected_head=draft.head)
    with pytest.raises(Conflict) as caught:
        await world.forge.reopen(change.ref)
    assert caught.value.code == "CHANGE_MERGED"


async def test_a_change_made_ready_stays_ready(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    ready = await world.forge.ready(change.ref)
    assert ready == replace(change, status=ChangeStatus.OPEN)
    assert await world.forge.ready(change.ref) == ready
    assert await world.forge.put(draft) == ready


async def test_a_closed_change_is_not_made_ready(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(draft)
    await world.forge.close(change.ref, note="")
    with pytest.raises(Conflict) as caught:
        await world.forge.ready(change.ref)
    assert caught.value.code == "CHANGE_CLOSED"


async def test_a_ready_change_says_whether_it_merges(world: World, draft: ChangeDraft) -> None:
    change = await world.forge.put(replace(draft, draft=False))
    assert (await world.forge.read(change.ref)).mergeable == "yes"
    world.push("main", {"a": "theirs\n"})
    assert (await world.forge.read(change.ref)).mergeable == "no"


async def test_a_way_to_merge_that_is_not_there_is_refused(world: World, draft: ChangeDraft) -> None:
    change, base = await world.forge.put(draft), world.base()
    with pytest.raises(Refused) as caught:
        await world.forge.merge(change.ref, expected_head=draft.head, method="octopus")
    assert (caught.value.code, world.base()) == ("BAD_METHOD", base)


async def test_a_base_that_is_not_there_is_named(world: World, draft: ChangeDraft) -> None:
    with pytest.raises(Conflict) as caught:
        await world.forge.put(replace(draft, base="develop"))
    assert caught.value.code == "BASE_MISSING"
