"""Projects: a repository, its forge and its settings."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from beadmill.domain.values import Actor, Event, Permission
from beadmill.errors import Conflict, Invalid, NotFound, Unprocessable
from beadmill.forges import registry
from beadmill.git.run import GitFailed
from beadmill.operations import _forges, views
from beadmill.operations.paging import Page, beyond, bounded, cut, decode
from beadmill.operations.ports import Ports
from beadmill.operations.receipts import once
from beadmill.operations.rules import require
from beadmill.store import tables as t
from beadmill.store.db import Tx
from beadmill.workspaces import attach

SHORT = re.compile(r"[A-Z][A-Z0-9]{0,9}")


async def add(
    ports: Ports,
    path: str,
    *,
    actor: Actor,
    name: str = "",
    short: str = "",
    base: str = "",
    forge: str = "",
    forge_url: str = "",
    overrides: Mapping[str, Any] | None = None,
    key: str = "",
) -> views.ProjectView:
    """Attaches the repository at ``path``, with its git settings as they are. ``forge`` "" = what its remote's host is
    known for. Raises Invalid, Unprocessable, Conflict when it is attached already."""
    require(actor, Permission.PLAN)
    with contextlib.suppress(GitFailed):  # no repository at all: said below, with all its problems
        await attach.trust(path)
    found = await _attachable(path, base)
    await _check_once(ports, found.path)
    kept = await _forges.chosen(found.path, found.remote, forge=forge, url=forge_url)
    layer = checked_overrides(ports, overrides or {})
    wanted = _short(short, found.path)
    title = name.strip() or Path(found.path).name
    request = {"path": found.path, "name": title, "short": wanted, "base": base, "forge": kept, "overrides": layer}

    def act(tx: Tx) -> str:
        tag = _free_short(tx.conn, wanted, chosen=bool(short), path=found.path)
        project = _insert(tx, tag, title, layer)
        repository = {"path": found.path, "base": found.base, "remote": found.remote, "forge": kept}
        tx.run(sa.insert(t.repositories).values(project_id=project, created=tx.now, **repository))
        tx.emit(Event("project.added", {"short": tag, "path": found.path}), actor=actor)
        return tag

    tag = await ports.store.write(
        lambda tx: once(
            tx, key, operation="projects.add", actor=actor, request=request, now=tx.now, act=lambda: act(tx)
        )
    )
    return await show(ports, tag, actor=actor)


async def listing(ports: Ports, *, actor: Actor, cursor: str = "", limit: int | None = None) -> Page[views.ProjectView]:
    require(actor, Permission.READ)
    most = bounded(limit)

    def read(conn: Connection) -> Page[views.ProjectView]:
        query = _query().order_by(t.projects.c.short).limit(most + 1)
        if cursor:
            query = query.where(beyond([(t.projects.c.short, False)], decode(cursor, 1)))
        rows, after = cut(list(conn.execute(query)), most, ["short"])
        return Page(items=tuple(_view(conn, row) for row in rows), next=after)

    return await ports.store.read(read)


async def show(ports: Ports, short: str, *, actor: Actor) -> views.ProjectView:
    """Raises NotFound. The repository's problems are looked up now."""
    require(actor, Permission.READ)
    view = await ports.store.read(lambda conn: _view(conn, project_row(conn, short)))
    if view.repository is None:
        return view
    problems = await _problems(view.repository.path, view.repository.base)
    return view.model_copy(update={"repository": view.repository.model_copy(update={"problems": problems})})


async def change(
    ports: Ports,
    short: str,
    *,
    actor: Actor,
    name: str | None = None,
    base: str | None = None,
    forge: str | None = None,
    forge_url: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    trust: bool = False,
    key: str = "",
) -> views.ProjectView:
    """``overrides`` replaces the whole layer. Runs that are going on keep what they froze. ``trust`` vouches for the
    repository's own git settings as they are now."""
    require(actor, Permission.PLAN)
    layer = None if overrides is None else checked_overrides(ports, overrides)
    if name is not None and not name.strip():
        raise Invalid("a project needs a name", code="NAME")

    def act(tx: Tx) -> str:
        row = project_row(tx.conn, short)
        values = {k: v for k, v in (("name", name), ("overrides", layer)) if v is not None}
        if values:
            tx.run(sa.update(t.projects).where(t.projects.c.id == row.id).values(**values))
        values = {k: v for k, v in (("base", base), ("forge", kept)) if v is not None}
        if values:
            tx.run(sa.update(t.repositories).where(t.repositories.c.project_id == row.id).values(**values))
        tx.emit(Event("project.changed", {"short": short}), actor=actor)
        return short

    before = await ports.store.read(lambda conn: project_row(conn, short))
    if trust:
        await attach.trust(before.path or "")
    kept = await _rechosen(before, forge, forge_url)
    request = {"short": short, "name": name, "base": base, "forge": kept, "overrides": layer, "trust": trust}
    await ports.store.write(
        lambda tx: once(
            tx, key, operation="projects.change", actor=actor, request=request, now=tx.now, act=lambda: act(tx)
        )
    )
    return await show(ports, short, actor=actor)


async def remove(ports: Ports, short: str, *, actor: Actor) -> views.Done:
    """Lets go of the repository. Tickets with a run stay readable; nothing in the repository is touched.

    Raises Conflict while a ticket of the project is active.
    """
    require(actor, Permission.ADMIN)
    return await ports.store.write(lambda tx: _remove(tx, short, actor))


def _remove(tx: Tx, short: str, actor: Actor) -> views.Done:
    row = project_row(tx.conn, short)
    tickets = t.tickets.c
    active = [
        key for (key,) in tx.run(sa.select(tickets.key).where(tickets.project_id == row.id, tickets.state == "active"))
    ]
    if active:
        raise Conflict(
            f"{short} has active tickets: {', '.join(active[:5])}",
            code="PROJECT_ACTIVE",
            details={"tickets": active},
            kept="nothing was changed",
            next="cancel or finish them first",
        )
    tx.run(sa.delete(t.repositories).where(t.repositories.c.project_id == row.id))
    tx.run(sa.delete(t.tickets).where(tickets.project_id == row.id, tickets.state == "draft", tickets.run_id.is_(None)))
    history = tx.run(sa.select(sa.func.count()).select_from(t.tickets).where(tickets.project_id == row.id)).scalar_one()
    if not history:
        tx.run(sa.delete(t.projects).where(t.projects.c.id == row.id))
    tx.emit(Event("project.removed", {"short": short, "kept_tickets": history}), actor=actor)
    kept = f"{history} tickets with their runs stay readable; " if history else ""
    return views.Done(message=f"{short} was removed", kept=f"{kept}the repository was not touched")


def checked_overrides(ports: Ports, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The layer, once it is known to be valid over the defaults. Raises Unprocessable naming each field."""
    try:
        ports.profile.now().overlaid(dict(overrides))
    except ValidationError as error:
        raise bad_settings(error) from error
    return dict(overrides)


def bad_settings(error: ValidationError) -> Unprocessable:
    fields = {
        ".".join(str(p) for p in e["loc"]): e["msg"] for e in error.errors(include_url=False, include_context=False)
    }
    said = "; ".join(f"{where}: {what}" for where, what in fields.items())
    return Unprocessable(
        f"these settings are not valid: {said}",
        code="SETTINGS",
        details={"fields": fields},
        kept="nothing was changed",
        next="beadmill config show lists every setting with its range",
    )


def project_row(conn: Connection, short: str) -> Any:
    row = conn.execute(_query().where(t.projects.c.short == short)).first()
    if row is None:
        raise NotFound(f"there is no project {short}", code="PROJECT_NOT_FOUND", next="beadmill project list")
    return row


def _query() -> sa.Select[Any]:
    r = t.repositories.c
    return sa.select(t.projects, r.path, r.base, r.remote, r.forge).outerjoin(
        t.repositories, r.project_id == t.projects.c.id
    )


def _view(conn: Connection, row: Any) -> views.ProjectView:
    count = sa.select(sa.func.count()).select_from(t.tickets).where(t.tickets.c.project_id == row.id)
    repository = row.path and _repository(row)
    return views.ProjectView(
        short=row.short,
        name=row.name,
        repository=repository or None,
        overrides=row.overrides,
        tickets=conn.execute(count).scalar_one(),
        created=row.created,
    )


def _repository(row: Any) -> views.RepositoryView:
    forge, url = registry.split(row.forge)
    return views.RepositoryView(path=row.path, base=row.base, remote=row.remote, forge=forge, forge_url=url)


async def _rechosen(row: Any, forge: str | None, url: str | None) -> str | None:
    """None = as it is. ``forge`` "" = what the remote says."""
    if row.path is None or (forge is None and url is None):
        return None
    kind, web = registry.split(row.forge)
    if (forge, url) in ((kind, web), (kind, None), (None, web)):
        return None
    return await _forges.chosen(
        row.path, row.remote, forge=kind if forge is None else forge, url=web if url is None else url
    )


async def _attachable(path: str, base: str) -> attach.Repository:
    """Raises Unprocessable with every problem."""
    found = await attach.inspect(path, base=base)
    if found.problems:
        first = found.problems[0]
        raise Unprocessable(
            first.message,
            code=first.code,
            details={"problems": [asdict(p) for p in found.problems], "path": found.path},
            kept="nothing was attached",
            next=first.next,
        )
    return found


async def _check_once(ports: Ports, path: str) -> None:
    """Another checkout of a repository that is attached is the same repository. Raises Conflict."""
    query = sa.select(t.repositories.c.path, t.projects.c.short).join(
        t.projects, t.projects.c.id == t.repositories.c.project_id
    )
    rows = await ports.store.read(lambda conn: list(conn.execute(query)))
    own = await attach.common_of(path)
    for row in rows:
        if row.path != path and own is not None and await attach.common_of(row.path) == own:
            raise Conflict(
                f"{path} is a checkout of the repository that is attached already, as {row.short}: {row.path}",
                code="ATTACHED",
                next=f"beadmill project show {row.short}",
            )


async def _problems(path: str, base: str) -> tuple[str, ...]:
    found = await attach.inspect(path, base=base)
    return tuple(" ".join((f.message + ".", f.next)).strip() for f in (*found.problems, *found.warnings))


def _short(short: str, path: Path | str) -> str:
    wanted = short.upper() or re.sub(r"[^A-Z0-9]", "", Path(path).name.upper()).lstrip("0123456789")[:4] or "PRJ"
    if not SHORT.fullmatch(wanted):
        raise Invalid(
            f"{short!r} cannot prefix ticket keys",
            code="SHORT",
            next="use 1 to 10 letters and digits, a letter first, for example API",
        )
    return wanted


def _free_short(conn: Connection, wanted: str, *, chosen: bool, path: str) -> str:
    """The wanted short name, numbered when it was only derived from the folder. Raises Conflict."""
    owner = conn.execute(
        sa.select(t.projects.c.short)
        .join(t.repositories, t.repositories.c.project_id == t.projects.c.id)
        .where(t.repositories.c.path == path)
    ).scalar()
    if owner:
        raise Conflict(
            f"{path} is attached already, as {owner}", code="ATTACHED", next=f"beadmill project show {owner}"
        )
    taken = {s for (s,) in conn.execute(sa.select(t.projects.c.short))}
    if wanted not in taken:
        return wanted
    if chosen:
        raise Conflict(f"another project has the short name {wanted}", code="SHORT_TAKEN", next="choose another one")
    return next(f"{wanted}{n}" for n in range(2, len(taken) + 3) if f"{wanted}{n}" not in taken)


def _insert(tx: Tx, short: str, name: str, overrides: dict[str, Any]) -> int:
    row = tx.run(
        sa.insert(t.projects)
        .values(short=short, name=name, overrides=overrides, counter=0, created=tx.now)
        .returning(t.projects.c.id)
    )
    return int(row.scalar_one())
