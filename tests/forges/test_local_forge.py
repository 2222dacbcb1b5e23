"""What only the local forge does: addresses, hooks of the bare repository, merges by other hands, kills."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from beadmill.errors import Conflict, Refused, Unavailable
from beadmill.forges import registry
from beadmill.forges.contract import ChangeDraft, ChangeStatus
from beadmill.forges.local import LocalForge, local_path

Git = Callable[..., str]
ACT = Path(__file__).with_name("forge_once.py")


@pytest.fixture
def forge(repo: Path) -> LocalForge:
    return LocalForge(repo)


@pytest.fixture
def draft(repo: Path, git: Git, tmp_path: Path) -> ChangeDraft:
    """Two commits on a branch that was pushed from another clone."""
    git(tmp_path, "clone", "-q", str(tmp_path / "origin.git"), "colleague")
    clone = tmp_path / "colleague"
    git(clone, "switch", "-qc", "beadmill/DEMO-1")
    for name in ("a", "b"):
        (clone / name).write_text(f"{name}\n")
        git(clone, "add", name)
        git(clone, "commit", "-qm", f"add {name}")
    git(clone, "push", "-q", "origin", "HEAD")
    return ChangeDraft("Title", "body", "beadmill/DEMO-1", "main", git(clone, "rev-parse", "HEAD"))


def once(order: dict[str, str], *, crash: str = "") -> tuple[int, str]:
    """Exit code and words of one act in its own process."""
    env = os.environ | {"BEADMILL_TESTING": "1", "BEADMILL_CRASH": crash}
    command = [sys.executable, str(ACT), json.dumps(order)]
    done = subprocess.run(command, env=env, check=False, timeout=60, stdout=subprocess.PIPE, text=True)
    return done.returncode, done.stdout.strip()


def by_merge(clone: Path, git: Git) -> None:
    git(clone, "merge", "-q", "--no-ff", "--no-edit", "beadmill/DEMO-1")


def by_fast_forward(clone: Path, git: Git) -> None:
    git(clone, "reset", "-q", "--hard", "beadmill/DEMO-1")


def by_squash(clone: Path, git: Git) -> None:
    git(clone, "merge", "-q", "--squash", "beadmill/DEMO-1")
    git(clone, "commit", "-qm", "squashed (#1)")


def by_rebase(clone: Path, git: Git) -> None:
    git(clone, "cherry-pick", "main..beadmill/DEMO-1")


@pytest.mark.parametrize("how", [by_merge, by_fast_forward, by_squash, by_rebase])
async def test_a_merge_by_other_hands_is_seen(
    forge: LocalForge, draft: ChangeDraft, tmp_path: Path, git: Git, *, how: Callable[[Path, Git], None]
) -> None:
    change, clone = await forge.put(draft), tmp_path / "colleague"
    git(clone, "switch", "-q", "main")
    if how is not by_fast_forward:
        git(clone, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    how(clone, git)
    git(clone, "push", "-q", "origin", "main")
    git(clone, "push", "-q", "origin", ":beadmill/DEMO-1")
    state = await forge.read(change.ref)
    assert (state.change.status, state.merge_sha) == (ChangeStatus.MERGED, git(clone, "rev-parse", "main"))


async def test_half_of_a_change_on_the_base_is_not_merged(
    forge: LocalForge, draft: ChangeDraft, tmp_path: Path, git: Git
) -> None:
    change, clone = await forge.put(draft), tmp_path / "colleague"
    git(clone, "switch", "-q", "main")
    git(clone, "cherry-pick", "beadmill/DEMO-1^")
    git(clone, "push", "-q", "origin", "main")
    assert (await forge.read(change.ref)).change.status == ChangeStatus.DRAFT


async def test_a_merge_runs_the_hooks_of_the_bare_repository(
    forge: LocalForge, draft: ChangeDraft, tmp_path: Path, git: Git
) -> None:
    hook = tmp_path / "origin.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho main is protected >&2\nexit 1\n")
    hook.chmod(0o755)
    change = await forge.put(draft)
    with pytest.raises(Refused, match="main is protected") as caught:
        await forge.merge(change.ref, expected_head=draft.head)
    assert caught.value.code == "MERGE_REFUSED"
    assert git(tmp_path / "origin.git", "rev-parse", "main") == git(tmp_path / "checkout", "rev-parse", "main")


async def test_a_merge_carries_the_users_name(forge: LocalForge, draft: ChangeDraft, tmp_path: Path, git: Git) -> None:
    git(tmp_path / "checkout", "config", "user.name", "Ada of the checkout")
    change = await forge.put(draft)
    await forge.merge(change.ref, expected_head=draft.head)
    shown = git(tmp_path / "origin.git", "show", "-s", "--format=%an|%cn|%ae|%s", "main")
    assert shown == "Ada of the checkout|Ada of the checkout|person@example.org|Merge change #1: Title"


async def test_each_state_of_a_change_is_kept_in_its_ref(
    forge: LocalForge, draft: ChangeDraft, tmp_path: Path, git: Git
) -> None:
    change = await forge.put(draft)
    await forge.close(change.ref, note="enough")
    origin = tmp_path / "origin.git"
    said = git(origin, "log", "--first-parent", "--format=%s", "-2", "refs/beadmill/changes/1")
    assert said.split("\n") == ["change #1: closed", "change #1: draft"]
    assert json.loads(git(origin, "show", "refs/beadmill/changes/1:change.json"))["note"] == "enough"


async def test_a_record_that_cannot_be_read_is_named(
    forge: LocalForge, draft: ChangeDraft, tmp_path: Path, git: Git
) -> None:
    change, origin = await forge.put(draft), tmp_path / "origin.git"
    (tmp_path / "change.json").write_text("{}")
    blob = git(origin, "hash-object", "-w", str(tmp_path / "change.json"))
    git(origin, "update-index", "--add", "--cacheinfo", f"100644,{blob},change.json")
    bad = git(origin, "commit-tree", "-m", "bad", git(origin, "write-tree"))
    git(origin, "update-ref", "refs/beadmill/changes/1", bad)
    with pytest.raises(Conflict) as caught:
        await forge.read(change.ref)
    assert caught.value.code == "BAD_CHANGE"


async def test_changes_put_at_once_get_their_own_numbers(repo: Path, draft: ChangeDraft, git: Git) -> None:
    drafts = []
    for n in range(4):
        git(repo.parent / "colleague", "push", "-q", "origin", f"HEAD:refs/heads/beadmill/P-{n}")
        drafts.append(ChangeDraft("t", "b", f"beadmill/P-{n}", "main", draft.head))
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(LocalForge(repo).put(one)) for one in drafts]
    assert sorted(task.result().ref.number for task in made) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("act", "point"),
    [("put", "forge.put"), ("put", "forge.put@2"), ("merge", "forge.merge"), ("merge", "forge.merge@2"),
     ("close", "forge.close"), ("close", "forge.close@2")],
)  # fmt: skip
async def test_a_process_killed_around_an_act_acts_once(
    forge: LocalForge, draft: ChangeDraft, repo: Path, git: Git, *, act: str, point: str
) -> None:
    if act != "put":
        await forge.put(draft)
    order = {"act": act, "repository": str(repo), "head": draft.head}
    assert once(order, crash=point) == (-signal.SIGKILL, "")
    done = once(order)
    origin = repo.parent / "origin.git"
    assert git(origin, "for-each-ref", "--format=%(refname)", "refs/beadmill/changes") == "refs/beadmill/changes/1"
    merges = git(origin, "rev-list", "--merges", "--count", "main")
    wanted = {"put": ("draft", "0"), "merge": ("merged", "1"), "close": ("closed", "0")}
    assert (*done, merges) == (0, *wanted[act])


@pytest.mark.parametrize("url", ["file://{}", "{}", "../origin.git"])
async def test_every_way_to_write_the_origin_works(
    forge: LocalForge, draft: ChangeDraft, repo: Path, git: Git, *, url: str
) -> None:
    git(repo, "remote", "set-url", "origin", url.format(repo.parent / "origin.git"))
    assert (await forge.put(draft)).url == f"{(repo.parent / 'origin.git').as_uri()}#change-1"


def test_addresses_on_other_machines_are_not_local() -> None:
    here = Path("/here")
    urls = ("https://host/x.git", "git@host:x.git", "ssh://host/x", "file://other/x.git")
    assert [local_path(url, here) for url in urls] == [None] * 4
    assert local_path("file:///a%20b/%C3%BC.git", here) == Path("/a b/ü.git")
    assert local_path("sub/x:y.git", here) == Path("/here/sub/x:y.git")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://host.invalid/x.git", "FORGE_NOT_LOCAL"),
        ("/no/such.git", "FORGE_MISSING"),
        ("../other", "FORGE_NOT_BARE"),
    ],
)
async def test_an_origin_that_cannot_be_a_forge_is_named(repo: Path, git: Git, *, url: str, code: str) -> None:
    git(repo.parent, "init", "-q", "other")
    git(repo, "remote", "set-url", "origin", url)
    with pytest.raises(Unavailable) as caught:
        await LocalForge(repo).find("x")
    assert caught.value.code == code
    assert not (await LocalForge(repo).probe()).ok


def test_forges_are_found_by_name(repo: Path) -> None:
    assert isinstance(registry.load("local", repo), LocalForge)
    with pytest.raises(Unavailable) as caught:
        registry.load("nowhere", repo)
    assert caught.value.next == "Choose one of: direct, gitea, github, gitlab, gogs, local."
