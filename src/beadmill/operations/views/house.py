"""Agents, SOPs, status, settings."""

from __future__ import annotations

from typing import Any, Literal

from beadmill.operations.views.base import View


class AgentView(View):
    name: str
    state: Literal["ready", "missing", "refused", "failed"]
    path: str
    version: str
    signed_in: bool | None
    note: str
    can: dict[str, Any]


class ProbeView(AgentView):
    models: tuple[str, ...]


class SopLine(View):
    name: str
    title: str
    description: str
    version: int
    builtin: bool


class SopView(SopLine):
    body: str
    nodes: tuple[str, ...]


class ProblemView(View):
    code: str
    message: str
    node: str
    line: int
    column: int


class LintView(View):
    ok: bool
    problems: tuple[ProblemView, ...]


class HealthLine(View):
    name: str
    ok: bool
    message: str
    next: str = ""


class StatusView(View):
    version: str
    home: str
    database: str
    tickets: dict[str, int]
    waits: int
    sessions: int
    seq: int
    health: tuple[HealthLine, ...]


class ConfigView(View):
    """Every setting with its value and where it comes from. Values of agents' environments are never shown."""

    values: dict[str, Any]
    sources: dict[str, str]


class LinkView(View):
    """A one-time sign-in token and when it stops working."""

    token: str
    expires: str


class Done(View):
    """An act without a richer answer: what happened, what was kept."""

    message: str
    kept: str = ""
