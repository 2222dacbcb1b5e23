"""What every view is made of."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Column = Literal["todo", "needs_input", "in_progress", "done"]


class View(BaseModel):
    model_config = ConfigDict(frozen=True)


class Spend(View):
    """``cost_usd`` None = nothing priced yet, never zero by guess; ``unpriced`` turns are not in it."""

    tokens: int = 0
    cost_usd: float | None = None
    unpriced: int = 0
    agent_seconds: float = 0


class BeadCount(View):
    done: int = 0
    total: int = 0
