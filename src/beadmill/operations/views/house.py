"""Agents, SOPs, status, settings."""

from __future__ import annotations

from typing import Any, Literal

from beadmill.operations.views.base import View


class InstallView(View):
    """An install as it runs, or how the last one ended. ``first`` is the number of the first of ``lines``: earlier ones
    are left out. ``error`` is the envelope of what failed. Events behind ``seq`` tell what comes next."""

    agent: str
    state: Literal["running", "done", "failed", "canceled"]
    started: str
    ended: str | None
    first: int
    lines: tuple[str, ...]
    version: str
    error: dict[str, Any] | None
    seq: int = 0


class ModelView(View):
    id: str
    name: str
    efforts: tuple[str, ...]


class TurnView(View):
    """One tiny real turn. ``end`` is Replied when it went well, else ``why``, ``message`` and ``next`` say what failed
    and what to do. ``cost_usd`` None = unpriced."""

    agent: str
    at: str
    ok: bool
    end: str
    text: str
    seconds: float
    model: str
    input: int
    cached: int
    output: int
    cost_usd: float | None
    cost_source: str
    why: str
    message: str
    next: str


class AgentView(View):
    """``sign_in`` says what to do when ``signed_in`` is not true. ``ours``: Beadmill has installed it. ``next`` is a
    command that helps when it is not ready. ``models`` and ``turn`` are what the last probe and the last turn of this
    daemon gave, None = not asked yet."""

    name: str
    state: Literal["ready", "missing", "refused", "failed"]
    path: str
    version: str
    signed_in: bool | None
    sign_in: str
    ours: bool
    note: str
    next: str
    can: dict[str, Any]
    install: InstallView | None = None
    models: tuple[ModelView, ...] | None = None
    turn: TurnView | None = None


class ProbeView(AgentView):
    models: tuple[ModelView, ...]


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
    """``servers``: the tickets for which an agent's server stays up between turns."""

    version: str
    home: str
    database: str
    tickets: dict[str, int]
    waits: int
    sessions: int
    servers: tuple[str, ...]
    seq: int
    health: tuple[HealthLine, ...]


class ConfigView(View):
    """Every setting with its value and where it comes from. Values of agents' environments are never shown."""

    values: dict[str, Any]
    sources: dict[str, str]


class SettingView(View):
    """``layers``: the value each layer has, lowest first: default, file, environment, flag, project, ticket, run.
    ``source`` is the one that counts. ``read`` says when a run reads it. ``pending``: the run still goes by
    ``layers["run"]``, and from when it goes by ``value``; "" when there is nothing to wait for."""

    path: str
    group: str
    kind: str
    choices: tuple[str, ...]
    range: str
    optional: bool
    says: str
    when: str
    read: str
    value: Any
    source: str
    layers: dict[str, Any]
    pending: str = ""


class SettingsView(View):
    """``scope``: profile, project or ticket. ``frozen``: the ticket has started. ``problem`` says why config.toml as it
    lies there does not count."""

    scope: Literal["profile", "project", "ticket"]
    name: str
    frozen: bool
    problem: str
    settings: tuple[SettingView, ...]


class LinkView(View):
    """A one-time sign-in token and when it stops working."""

    token: str
    expires: str


class Done(View):
    """An act without a richer answer: what happened, what was kept."""

    message: str
    kept: str = ""
