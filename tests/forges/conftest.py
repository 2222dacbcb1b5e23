"""Worlds of hosted forges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beadmill.forges.contract import ChangeDraft
from tests.forges.worlds import HOSTED, Hosted, hosted, named

Git = Callable[..., str]


@pytest.fixture(params=named(HOSTED))
def there(request: pytest.FixtureRequest, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosted]:
    """One service after the other; ``indirect`` parameters name the ones a test is about."""
    with hosted(HOSTED[request.param], repo, git, monkeypatch) as made:
        yield made


@pytest.fixture
def pushed(there: Hosted) -> ChangeDraft:
    head = there.push("beadmill/DEMO-1", {"a": "a\n", "b": "b\n"})
    return ChangeDraft("Add a ü", "Body 中文\n\nsecond line", "beadmill/DEMO-1", "main", head)
