"""REST under /api/v1: one thin route per operation, from the table in operations/routes.py."""

from __future__ import annotations

from fastapi import FastAPI

from beadmill.operations.routes import PREFIX
from beadmill.web.api import artifacts, docs, gates, house, projects, prompts, runs, streams, tickets


def include(app: FastAPI) -> None:
    """Each router by itself: within a router of their own every route would be built twice."""
    for part in (projects, tickets, gates, runs, artifacts, streams, prompts, house):
        app.include_router(part.router, prefix=PREFIX)
    app.include_router(docs.router)
