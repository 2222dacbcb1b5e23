"""SOPs: built-in ones and, when published, the installation's own."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill import sops
from beadmill.domain.sop import lint
from beadmill.domain.values import Actor, Permission
from beadmill.errors import Invalid, NotFound
from beadmill.operations import views
from beadmill.operations.ports import Ports
from beadmill.operations.rules import require
from beadmill.store import tables as t


@dataclass(frozen=True, slots=True)
class Found:
    name: str
    body: str
    version: int
    builtin: bool
    sop: sops.Sop


def find(conn: Connection, name: str) -> Found:
    """The newest published version, else the built-in. Raises NotFound."""
    d, v = t.definitions.c, t.definition_versions.c
    query = (
        sa.select(v.body, v.version)
        .join(t.definitions, d.id == v.definition_id)
        .where(d.kind == "sop", d.name == name, v.state == "published")
        .order_by(v.version.desc())
        .limit(1)
    )
    row = conn.execute(query).first()
    if row is not None:
        return Found(
            name, row.body, row.version, builtin=False, sop=sops.load(row.body, name=name, version=row.version)
        )
    if name not in sops.NAMES:
        raise NotFound(f"there is no SOP {name}", code="SOP_NOT_FOUND", next="beadmill sop list")
    body = sops.builtin(name)
    loaded = sops.load(body, name=name)
    return Found(name, body, 1, builtin=True, sop=loaded)


async def listing(ports: Ports, *, actor: Actor) -> tuple[views.SopLine, ...]:
    require(actor, Permission.READ)

    def read(conn: Connection) -> tuple[views.SopLine, ...]:
        d = t.definitions.c
        own = [n for (n,) in conn.execute(sa.select(d.name).where(d.kind == "sop").order_by(d.name))]
        names = dict.fromkeys([*sops.NAMES, *own])
        return tuple(_line(found) for name in names if (found := _published(conn, name)))

    return await ports.store.read(read)


def _published(conn: Connection, name: str) -> Found | None:
    try:
        return find(conn, name)
    except NotFound:
        return None  # only drafts so far


async def show(ports: Ports, name: str, *, actor: Actor) -> views.SopView:
    """Raises NotFound."""
    require(actor, Permission.READ)
    found = await ports.store.read(lambda conn: find(conn, name))
    nodes = tuple(found.sop.graph.nodes)
    return views.SopView(**_line(found).model_dump(), body=found.body, nodes=nodes)


async def check(ports: Ports, *, actor: Actor, name: str = "", text: str = "") -> views.LintView:
    """Lints a named SOP or a text. A text that is not even a SOP is one problem with its line, not an error."""
    require(actor, Permission.READ)
    if bool(name) == bool(text):
        raise Invalid("give the name of a SOP or its text, not both", code="LINT")
    try:
        body = text or (await ports.store.read(lambda conn: find(conn, name))).body
        graph = sops.load(body, name=name or "draft").graph
    except Invalid as error:
        return views.LintView(ok=False, problems=(_as_problem(error),))
    problems = tuple(
        views.ProblemView(code=p.code, message=p.message, node=p.node, line=p.line, column=p.column)
        for p in lint(graph, ports.kinds)
    )
    return views.LintView(ok=not problems, problems=problems)


def _as_problem(error: Invalid) -> views.ProblemView:
    line, column = error.details.get("line", 0), error.details.get("column", 0)
    return views.ProblemView(code=error.code, message=error.message, node="", line=line, column=column)


def _line(found: Found) -> views.SopLine:
    sop = found.sop
    return views.SopLine(
        name=found.name, title=sop.title, description=sop.description, version=found.version, builtin=found.builtin
    )
