"""What only services do: rules, queues, forks, lags, pages, reviews."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from beadmill.errors import Conflict, Stale, Unavailable
from beadmill.forges.contract import ChangeDraft, ChangeStatus, Check
from tests.forges.fakes import gitea, github, gitlab
from tests.forges.fakes.gitlab import GitLabHub
from tests.forges.fakes.hub import AT
from tests.forges.worlds import Hosted

only = pytest.mark.parametrize
RULE = "At least 1 approving review is required"


def acts(there: Hosted) -> list[str]:
    """What was asked of the service beside looking."""
    quiet = ("isInMergeQueue",)
    return [
        f"{a.method} {a.path}"
        for a in there.hub.asked
        if a.method != "GET" and not any(q in str(a.body) for q in quiet)
    ]


async def test_c66_a_second_put_changes_nothing_at_the_service(there: Hosted, pushed: ChangeDraft) -> None:
    await there.forge.put(pushed)
    there.hub.asked.clear()
    await there.forge.put(pushed)
    assert acts(there) == []


async def test_c66_a_change_that_exists_already_is_found_and_updated(there: Hosted, pushed: ChangeDraft) -> None:
    """Somebody opened it between our look and our act."""
    hub = there.hub
    first = hub.open(hub.project, pushed.branch, base="main", title="By hand", body="", draft=True)
    assert first is not None
    forge, looks = there.forge, [None]
    real = type(forge).service  # type: ignore[attr-defined]

    def late(self: Any, http: Any, ends: Any) -> Any:
        made = real(self, http, ends)
        newest = type(made).newest

        class Late(type(made)):  # type: ignore[misc]
            async def newest(self, branch: str) -> Any:
                return looks.pop() if looks else await newest(self, branch)

        return Late(http, ends)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(forge), "service", late)
        change = await forge.put(pushed)
    assert (change.ref.number, change.title, first.body) == (1, pushed.title, pushed.body)


async def test_c68_a_fork_proposes_to_the_repository_above_it(there: Hosted, pushed: ChangeDraft) -> None:
    there.hub.fork("me/sample", there.checkout.parent / "fork.git")
    there.git(there.checkout, "remote", "set-url", "origin", f"{there.hub.url}/me/sample.git")
    there.git(there.checkout, "remote", "add", "upstream", f"{there.hub.url}/team/sample.git")
    head = there.push("beadmill/F-1", {"f": "f\n"}, to=str(there.checkout.parent / "fork.git"))
    change = await there.forge.put(replace(pushed, branch="beadmill/F-1", head=head))
    assert await there.forge.find("beadmill/F-1") == change
    state = await there.forge.read(change.ref)
    assert (state.repository, change.head, there.hub.changes[0].home) == ("me/sample", head, "me/sample")
    merged = await there.forge.merge(change.ref, expected_head=head)
    assert merged.sha == there.base()


async def test_c69_a_push_that_the_service_has_not_seen_yet_is_waited_for(there: Hosted, pushed: ChangeDraft) -> None:
    await there.forge.put(pushed)
    head = there.push(pushed.branch, {"c": "c\n"}, onto=pushed.branch)
    there.hub.lags = 3
    assert (await there.forge.put(replace(pushed, head=head))).head == head


async def test_c69_a_service_that_never_sees_the_push_is_named(there: Hosted, pushed: ChangeDraft) -> None:
    await there.forge.put(pushed)
    head = there.push(pushed.branch, {"c": "c\n"}, onto=pushed.branch)
    there.hub.lags = 99
    with pytest.raises(Unavailable) as caught:
        await there.forge.put(replace(pushed, head=head))
    assert caught.value.code == "FORGE_LAGS"


async def test_c70_a_rule_that_forbids_the_merge_is_said_and_nothing_is_done(
    there: Hosted, pushed: ChangeDraft
) -> None:
    there.hub.blocked = RULE
    if isinstance(there.hub, GitLabHub):
        there.hub.status = "not_approved"
    change, base = await there.forge.put(pushed), there.base()
    with pytest.raises(Conflict) as caught:
        await there.forge.merge(change.ref, expected_head=pushed.head)
    assert (caught.value.code, there.base()) == ("MERGE_BLOCKED", base)
    assert await there.forge.find(pushed.branch) == change


@only("there", ["github", "gitlab"], indirect=True)
async def test_c70_a_blocked_change_says_so_when_it_is_read(there: Hosted, pushed: ChangeDraft) -> None:
    there.hub.blocked = RULE
    if isinstance(there.hub, GitLabHub):
        there.hub.status = "not_approved"
    change = await there.forge.put(replace(pushed, draft=False))
    state = await there.forge.read(change.ref)
    assert (state.mergeable, bool(state.blocked), state.change.status) == ("yes", True, ChangeStatus.OPEN)


@only("there", ["github", "gitlab"], indirect=True)
async def test_c70_a_merge_queue_takes_the_change_and_merges_it_later(there: Hosted, pushed: ChangeDraft) -> None:
    there.hub.queue = True
    change, base = await there.forge.put(pushed), there.base()
    queued = await there.forge.merge(change.ref, expected_head=pushed.head)
    assert (queued.queued, queued.sha, there.base()) == (True, "", base)
    assert await there.forge.merge(change.ref, expected_head=pushed.head) == queued
    state = await there.forge.read(change.ref)
    assert (state.queued, state.change.status) == (True, ChangeStatus.OPEN)
    there.hub.run_queue()
    done = await there.forge.merge(change.ref, expected_head=pushed.head)
    assert (done.queued, done.sha) == (False, there.base())


async def test_c71_a_change_closed_by_the_service_is_closed_whatever_the_base_holds(
    there: Hosted, pushed: ChangeDraft
) -> None:
    """Git proves what landed (nodes/_publish.py); the forge's word is not changed for it."""
    change = await there.forge.put(pushed)
    there.push("main", {"a": "a\n", "b": "b\n"})
    there.git(there.checkout.parent / "origin.git", "update-ref", "-d", f"refs/heads/{pushed.branch}")
    there.hub.changes[0].state = "closed"
    state = await there.forge.read(change.ref)
    assert (state.change.status, state.change.head, state.merge_sha) == (ChangeStatus.CLOSED, pushed.head, "")


async def test_a_change_whose_branch_is_gone_is_not_opened_again(there: Hosted, pushed: ChangeDraft) -> None:
    change = await there.forge.put(pushed)
    await there.forge.close(change.ref, note="")
    there.git(there.checkout.parent / "origin.git", "update-ref", "-d", f"refs/heads/{pushed.branch}")
    with pytest.raises(Conflict) as caught:
        await there.forge.reopen(change.ref)
    assert caught.value.code == "CHANGE_NOT_REOPENED"


@only("there", ["github", "gitlab"], indirect=True)
async def test_a_service_that_still_works_it_out_is_asked_again(there: Hosted, pushed: ChangeDraft) -> None:
    change = await there.forge.put(replace(pushed, draft=False))
    there.hub.slow = 3
    there.hub.changes[0].looks = 0
    merged = await there.forge.merge(change.ref, expected_head=pushed.head)
    assert (merged.sha, there.waited) == (there.base(), [0.5, 1.0, 2.0])


async def test_a_branch_that_moves_during_the_merge_is_stale(there: Hosted, pushed: ChangeDraft) -> None:
    change = await there.forge.put(replace(pushed, draft=False))
    hub, seen = there.hub, there.hub.merges
    later: list[str] = []

    def move(found: Any) -> bool | None:
        if not later:
            later.append(there.push(pushed.branch, {"c": "c\n"}, onto=pushed.branch))
        return seen(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "merges", move)
        with pytest.raises(Stale) as caught:
            await there.forge.merge(change.ref, expected_head=pushed.head)
    assert caught.value.details == {"expected": pushed.head, "found": later[0]}


@only("there", ["github", "gitea"], indirect=True)
async def test_the_repositorys_own_way_to_merge_is_taken(there: Hosted, pushed: ChangeDraft) -> None:
    there.hub.methods = ["squash"]
    change = await there.forge.put(pushed)
    merged = await there.forge.merge(change.ref, expected_head=pushed.head)
    parents = there.git(there.checkout.parent / "origin.git", "show", "-s", "--format=%P", "main").split()
    assert (merged.method, len(parents)) == ("squash", 1)


@only("there", ["gitlab"], indirect=True)
async def test_a_project_that_fast_forwards_does_so(there: Hosted, pushed: ChangeDraft) -> None:
    assert isinstance(there.hub, GitLabHub)
    there.hub.merge_method = "ff"
    change = await there.forge.put(pushed)
    merged = await there.forge.merge(change.ref, expected_head=pushed.head)
    assert (merged.method, merged.sha) == ("rebase", there.base())


@only("there", ["github"], indirect=True)
async def test_a_repository_without_drafts_gets_a_ready_change(there: Hosted, pushed: ChangeDraft) -> None:
    assert isinstance(there.hub, github.GitHubHub)
    there.hub.drafts = False
    assert (await there.forge.put(pushed)).status is ChangeStatus.OPEN


async def test_closing_leaves_the_note_once(there: Hosted, pushed: ChangeDraft) -> None:
    change = await there.forge.put(pushed)
    await there.forge.close(change.ref, note="not wanted")
    await there.forge.close(change.ref, note="not wanted")
    assert [(c.author, c.body) async for c in there.forge.comments(change.ref)] == [("robot", "not wanted")]


async def test_comments_come_from_every_page_oldest_first(there: Hosted, pushed: ChangeDraft) -> None:
    change = await there.forge.put(pushed)
    made = gitlab.note if isinstance(there.hub, GitLabHub) else github.note
    there.hub.page = 2
    there.hub.changes[0].notes = [made(n, "ada", f"word {n}", f"2026-01-0{n}T00:00:00Z") for n in range(1, 6)]
    whole = [one.body async for one in there.forge.comments(change.ref)]
    since = [one.body async for one in there.forge.comments(change.ref, datetime(2026, 1, 4, tzinfo=UTC))]
    if isinstance(there.hub, gitea.GiteaHub):
        whole, since = whole[:5], since[:2]
    assert (whole, since) == ([f"word {n}" for n in range(1, 6)], ["word 4", "word 5"])


async def test_a_comment_on_a_line_says_where(there: Hosted, pushed: ChangeDraft) -> None:
    change = await there.forge.put(pushed)
    hub, kept = there.hub, there.hub.changes[0]
    if isinstance(hub, GitLabHub):
        kept.notes = [{**gitlab.note(1, "ada", "why?"), "position": {"new_path": "a", "new_line": 1}}]
    elif isinstance(hub, gitea.GiteaHub):
        kept.reviews = [{**gitea.review(1, "ada", "COMMENT"), "comments_count": 1}]
        kept.lines = [{**gitea.note(1, "ada", "why?"), "path": "a", "position": 1, "original_position": 1}]
        del kept.lines[0]["updated_at"]
    else:
        kept.lines = [{**github.note(1, "ada", "why?"), "path": "a", "line": 1}]
    assert [(c.body, c.path, c.line) async for c in there.forge.comments(change.ref)] == [("why?", "a", 1)]


async def test_reviews_say_who_approved_and_who_wants_changes(there: Hosted, pushed: ChangeDraft) -> None:
    change = await there.forge.put(pushed)
    kept = there.hub.changes[0]
    if isinstance(there.hub, GitLabHub):
        asked = {"user": gitlab.user("bob"), "state": "requested_changes", "created_at": AT}
        kept.reviews = [{"user": gitlab.user("ada")}, asked]
    else:
        no = "REQUEST_CHANGES" if isinstance(there.hub, gitea.GiteaHub) else "CHANGES_REQUESTED"
        kept.reviews = [github.review(1, "ada", "APPROVED"), github.review(2, "bob", no, "the name")]
        if isinstance(there.hub, gitea.GiteaHub):
            kept.reviews = [{**one, "dismissed": False, "comments_count": 0} for one in kept.reviews]
    found = [(r.author, r.state) for r in (await there.forge.read(change.ref)).reviews]
    assert found == [("ada", "approved"), ("bob", "changes_requested")]


async def test_checks_say_what_passed_and_what_did_not(there: Hosted, pushed: ChangeDraft) -> None:
    change = await there.forge.put(pushed)
    url = "https://ci.example.org/1"
    if isinstance(there.hub, GitLabHub):
        words = {"lint": "success", "test": "failed", "deploy": "running", "manual": "manual"}
        there.hub.statuses = [{"name": n, "status": w, "target_url": url} for n, w in words.items()]
    elif isinstance(there.hub, gitea.GiteaHub):
        words = {"lint": "success", "test": "failure", "deploy": "pending"}
        there.hub.statuses = [{"context": n, "status": w, "target_url": url} for n, w in words.items()]
    else:
        runs = {"lint": ("completed", "success"), "test": ("completed", "failure")}
        there.hub.statuses = [{"name": n, "status": s, "conclusion": c, "html_url": url} for n, (s, c) in runs.items()]
        there.hub.statuses.append({"context": "deploy", "state": "pending", "target_url": url})
    wanted = (Check("lint", "passed", url), Check("test", "failed", url), Check("deploy", "pending", url))
    assert (await there.forge.read(change.ref)).checks == wanted


async def test_the_probe_says_who_we_are_and_what_we_may(there: Hosted) -> None:
    health = await there.forge.probe()
    assert (health.ok, health.detail["login"], health.detail["push"], health.detail["drafts"]) == (
        True,
        "robot",
        "yes",
        "yes",
    )


async def test_the_probe_says_that_pushing_is_not_allowed(there: Hosted) -> None:
    there.hub.pushes = False
    if isinstance(there.hub, GitLabHub):
        there.hub.level = 20
    health = await there.forge.probe()
    assert (health.ok, "may not push" in health.message) == (False, True)


async def test_a_long_text_is_cut_to_what_the_service_takes(there: Hosted, pushed: ChangeDraft) -> None:
    change = await there.forge.put(replace(pushed, title="t" * 400, body="b" * 600_000))
    assert (len(change.title), len(there.hub.changes[0].body) < 600_000) == (240, True)
