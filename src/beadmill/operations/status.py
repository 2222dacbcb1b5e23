"""How the installation is doing, and what its settings are."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

import beadmill
from beadmill.domain.values import Actor, Permission
from beadmill.errors import Unavailable
from beadmill.operations import _rows, views
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require
from beadmill.store import tables as t

LOW = 500 * 1024 * 1024  # bytes free below which worktrees are likely to fail
HIDDEN = "(set)"


async def show(ports: Ports, *, actor: Actor) -> views.StatusView:
    """Counts per board column, what waits, what runs, and the checks of a quick doctor."""
    require(actor, Permission.READ)
    health = (*await asyncio.to_thread(_health, ports), await _sandbox(ports))
    serving = await asyncio.to_thread(ports.sessions.servers.runs)
    return await ports.store.read(lambda conn: _view(ports, conn, health, serving))


def _view(
    ports: Ports, conn: Connection, health: tuple[views.HealthLine, ...], serving: Collection[str]
) -> views.StatusView:
    count = sa.func.count()
    columns: Counter[str] = Counter({"todo": 0, "needs_input": 0, "in_progress": 0, "done": 0})
    grouped = sa.select(t.tickets.c.status, _rows.asked().label("asked"), count.label("n"))
    for row in conn.execute(grouped.group_by(t.tickets.c.status, sa.text("asked"))):
        columns[_rows.column_of(row.status, asked=bool(row.asked))] += row.n
    waits = conn.execute(sa.select(count).select_from(t.gates).where(t.gates.c.state == "open")).scalar_one()
    live = sa.select(count).select_from(t.sessions).where(t.sessions.c.ended.is_(None))
    return views.StatusView(
        version=beadmill.__version__,
        home=str(ports.settings.home),
        database="PostgreSQL" if ports.store.postgres else "SQLite",
        tickets=dict(columns),
        waits=waits,
        sessions=conn.execute(live).scalar_one(),
        servers=_owners(conn, serving),
        seq=_rows.last_seq(conn),
        health=health,
    )


def _owners(conn: Connection, runs: Collection[str]) -> tuple[str, ...]:
    """The ticket of each run; a run without one, or one the store does not know, is named itself."""
    joined = t.runs.join(t.tickets, t.tickets.c.id == t.runs.c.ticket_id)
    found = conn.execute(sa.select(t.runs.c.id, t.tickets.c.key).select_from(joined).where(t.runs.c.id.in_(runs)))
    keys = {row.id: row.key for row in found}
    return tuple(sorted(keys.get(run, run) for run in runs))


def _health(ports: Ports) -> tuple[views.HealthLine, ...]:
    return (_git(), _home(ports.settings.home), _space(ports.settings.home))


async def _sandbox(ports: Ports) -> views.HealthLine:
    """Which sandbox the next run would get, by its probe."""
    wanted = ports.profile.now()
    try:
        chosen = await ports.choose(wanted.sandbox, wanted.network, image=wanted.sandbox_image)
    except Unavailable as error:
        return views.HealthLine(name="sandbox", ok=False, message=error.message, next=error.next)
    said = f"{chosen.name}: {chosen.health.message}"
    return views.HealthLine(name="sandbox", ok=not chosen.why, message=said, next=chosen.why)


def _git() -> views.HealthLine:
    path = shutil.which("git")
    return views.HealthLine(
        name="git", ok=path is not None, message=path or "git was not found", next="" if path else "install git ≥ 2.39"
    )


def _home(home: Path) -> views.HealthLine:
    mode = home.stat().st_mode & 0o077
    ok = mode == 0 and os.access(home, os.W_OK)
    said = f"{home} is yours alone" if ok else f"{home} can be read by others, or not be written"
    return views.HealthLine(name="home", ok=ok, message=said, next="" if ok else f"chmod 700 {home}")


def _space(home: Path) -> views.HealthLine:
    free = shutil.disk_usage(home).free
    ok = free > LOW
    said = f"{free // 1024**2:,} MB free"
    return views.HealthLine(name="disk", ok=ok, message=said, next="" if ok else "free some space before the next run")


async def config(ports: Ports, *, actor: Actor) -> views.ConfigView:
    """Every setting with its value and source: environment, config.toml or default."""
    require(actor, Permission.READ)
    settings = ports.settings
    values = settings.model_dump(mode="json")
    for options in values["agents"].values():
        if "env" in options:
            options["env"] = dict.fromkeys(options["env"], HIDDEN)
    if settings.database_url:
        values["database_url"] = sa.engine.make_url(settings.database_url).render_as_string(hide_password=True)
    values["defaults"] = ports.profile.now().model_dump(mode="json")
    file = await asyncio.to_thread(_from_file, settings.home / "config.toml")
    sources = {name: _source(name, file, settings.model_fields_set) for name in values}
    return views.ConfigView(values=values, sources=sources)


def _source(name: str, file: dict[str, Any], given: set[str]) -> str:
    variable = f"BEADMILL_{name.upper()}"
    if any(v == variable or v.startswith(f"{variable}__") for v in os.environ):
        return f"environment {variable}"
    if name in file:
        return "config.toml"
    return "flag" if name in given and name != "home" else "default"


def _from_file(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(path.read_text()) if path.exists() else {}
