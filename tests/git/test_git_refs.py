from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beadmill.errors import Refused, Stale
from beadmill.git import refs
from beadmill.git.run import Repo

Git = Callable[..., str]
NAMES = st.lists(st.sampled_from("aAbB12"), min_size=1, max_size=3).map("/".join)


@pytest.fixture
def here(repo: Path) -> Repo:
    return Repo(repo / ".git", repo)


async def test_a_ref_moves_only_from_where_it_was_seen(here: Repo, git: Git, repo: Path) -> None:
    head = git(repo, "rev-parse", "HEAD")
    other = git(repo, "commit-tree", "-m", "x", "HEAD^{tree}")
    await refs.update(here, "refs/beadmill/x", head, old="")
    with pytest.raises(Stale) as caught:
        await refs.update(here, "refs/beadmill/x", other, old="")
    assert caught.value.details == {"expected": "", "found": head}
    await refs.update(here, "refs/beadmill/x", other, old=head)
    assert await refs.listing(here, "refs/beadmill") == {"refs/beadmill/x": other}


async def test_a_name_of_nothing_has_no_commit(here: Repo) -> None:
    assert [await refs.commit(here, rev) for rev in ("nothing", "refs/heads/nothing", "HEAD:README.md")] == [""] * 3


@pytest.mark.parametrize(
    ("taken", "free"),
    [
        ((), "beadmill/DEMO-1"),
        (("beadmill/DEMO-1",), "beadmill/DEMO-1-2"),
        (("beadmill/demo-1", "beadmill/DEMO-1-2"), "beadmill/DEMO-1-3"),
        (("beadmill/DEMO-1/deeper",), "beadmill/DEMO-1-2"),
        (("Beadmill",), "beadmill-DEMO-1"),
        (("beadmill", "beadmill-demo-1"), "beadmill-DEMO-1-2"),
    ],
)
def test_a_free_name_is_near_the_wanted_one(taken: tuple[str, ...], free: str) -> None:
    assert refs.free_branch("beadmill/DEMO-1", taken) == free


@given(NAMES, st.sets(NAMES, max_size=6))
def test_a_free_name_never_clashes(wanted: str, taken: set[str]) -> None:
    name = refs.free_branch(wanted, taken).casefold()
    folded = {other.casefold() for other in taken}
    assert not any(name == o or name.startswith(f"{o}/") or o.startswith(f"{name}/") for o in folded)


@pytest.mark.parametrize("name", ["a b", "-x", "a..b", "x.lock", "refs/heads/x", "a~1", ""])
async def test_a_name_that_git_refuses_is_refused(here: Repo, name: str) -> None:
    with pytest.raises(Refused) as caught:
        await refs.good_branch(here, name)
    assert caught.value.code == "BAD_BRANCH"
