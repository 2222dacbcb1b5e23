"""The screens: server-rendered, live by one event stream per page. Every act is a form that calls an operation."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, FastAPI

from beadmill.web.pages import (
    agents,
    artifacts,
    beads,
    board,
    clean,
    gates,
    projects,
    prompts,
    qa,
    runs,
    sessions,
    tickets,
    undo,
)
from beadmill.web.pages.assets import Assets


def routers() -> Sequence[APIRouter]:
    return [
        module.router
        for module in (
            board,
            qa,
            tickets,
            undo,
            gates,
            artifacts,
            beads,
            sessions,
            runs,
            agents,
            prompts,
            clean,
            projects,
        )
    ]


def mount(app: FastAPI) -> None:
    app.mount("/static", Assets())
