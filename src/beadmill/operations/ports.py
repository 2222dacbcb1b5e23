"""Ports: everything an operation may need, built once by app.py and handed to every door."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from beadmill.agents.contract import Agent
from beadmill.domain.sop import KindSpec
from beadmill.engine.port import Engine
from beadmill.engine.prices import Prices
from beadmill.operations.desk import Desk
from beadmill.processes.contract import Sessions
from beadmill.profile import Profile
from beadmill.settings import Settings
from beadmill.store.db import Store
from beadmill.workspaces.sandboxes.choice import Choose, choose
from beadmill.workspaces.worktrees import Worktrees


class AgentCatalog(Protocol):
    """The executors that are registered here. Loading one is cheap; asking it something is not."""

    def names(self) -> Sequence[str]: ...

    def load(self, name: str) -> Agent:
        """Raises NotFound."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """``kinds`` is what the lint knows about the installed node kinds. ``settings`` are as the daemon found them when it
    started; ``profile`` has the settings of runs as they are now."""

    settings: Settings
    store: Store
    engine: Engine
    sessions: Sessions
    agents: AgentCatalog
    kinds: Mapping[str, KindSpec]
    trees: Worktrees = field(default_factory=Worktrees)
    choose: Choose = choose
    desk: Desk = field(default_factory=Desk)
    prices: Prices = field(default_factory=Prices)
    profile: Profile = field(kw_only=True)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
