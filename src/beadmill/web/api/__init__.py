"""REST under /api/v1: one thin route per operation, from the table in operations/routes.py."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from beadmill.web.api import artifacts, docs, gates, house, projects, prompts, qa, runs, streams, tickets, upkeep


def routers() -> Sequence[APIRouter]:
    parts = (projects, tickets, qa, gates, runs, artifacts, streams, prompts, upkeep, house, docs)
    return [part.router for part in parts]
