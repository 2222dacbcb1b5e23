"""REST under /api/v1: one thin route per operation, from the table in operations/routes.py."""

from __future__ import annotations

from fastapi import APIRouter

from beadmill.operations.routes import PREFIX
from beadmill.web.api import artifacts, docs, gates, house, projects, runs, streams, tickets


def router() -> APIRouter:
    out = APIRouter()
    for part in (projects, tickets, gates, runs, artifacts, streams, house):
        out.include_router(part.router, prefix=PREFIX)
    out.include_router(docs.router)
    return out
