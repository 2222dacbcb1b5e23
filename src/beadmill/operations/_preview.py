"""A prompt assembled as a session would get it, before anything is saved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from beadmill.briefs import Briefs, PartText, check, samples
from beadmill.briefs.catalog import SHEETS
from beadmill.briefs.folder import Folder
from beadmill.briefs.source import built_in, is_snippet, users
from beadmill.errors import NotFound, Unprocessable
from beadmill.operations import views
from beadmill.operations._forms import form
from beadmill.store import blobs
from beadmill.store import tables as t

s = t.sessions.c
KEPT = "your text; the prompt is unchanged"


@dataclass(frozen=True, slots=True)
class Material:
    """``heads`` are the fields of a brief's first line."""

    of: str
    heads: Mapping[str, str]
    parts: tuple[PartText, ...]


def refuse(name: str, fault: check.Fault | None) -> None:
    """Raises Unprocessable with line and reason."""
    if fault is not None:
        raise Unprocessable(
            f"the prompt {name} cannot be used: {fault}",
            code="PROMPT_INVALID",
            details={"name": name, "line": fault.line, "reason": fault.reason},
            kept=KEPT,
            next="correct it and save again",
        )


def template_of(name: str, edits: Mapping[str, str]) -> str:
    """The prompt itself; of a snippet the first that includes it."""
    return (users(name, edits) or users(name, {}))[0] if is_snippet(name) else name


def laid(where: Folder, name: str, text: str | None) -> Mapping[str, str]:
    """The usable edits with ``text`` among them. Raises NotFound, Unprocessable."""
    edits = dict(where.edits())
    if text is not None:
        edits[name] = text
    if edits.get(name) == built_in(name):
        del edits[name]
    checked = check.checked(edits)
    refuse(name, checked.faults.get(name))
    return checked.good


def material(conn: Connection, template: str, run: str) -> Material:
    if not run:
        return Material("sample", samples.HEADS, tuple(samples.material(template)))
    query = sa.select(t.sessions).where(s.run_id == run, s.template == template, s.prompt_sha.is_not(None))
    row = conn.execute(query.order_by(s.started.desc(), s.token.desc())).first()
    if row is None:
        raise NotFound(
            f"{run} has no session that was briefed with {template}",
            code="NO_SUCH_SESSION",
            next=f"beadmill run context {run} lists what its sessions were given",
        )
    brief = blobs.get_blob(conn, row.prompt_sha).decode()
    heads = dict(field.split(": ", 1) for field in brief.split("\n", 1)[0].split(" | ")[1:] if ": " in field)
    names = dict.fromkeys(part["name"] for part in row.ledger if not part["dropped"])
    found = [
        (name, re.search(rf"<{re.escape(name)}>\n(.*?)\n</{re.escape(name)}>", brief, re.DOTALL)) for name in names
    ]
    parts = tuple(PartText(name, match[1]) for name, match in found if match and name in SHEETS[template].parts)
    return Material(row.token, {name: heads.get(name, "").strip() for name in samples.HEADS}, parts)


def assembled(name: str, template: str, edits: Mapping[str, str], given: Material) -> views.PreviewView:
    values = samples.values(template)[0]
    brief = Briefs(edits=edits).write(template, given.parts, shape=form(template), **given.heads, **values)
    parts = [views.PartLine.model_validate(part, from_attributes=True) for part in brief.ledger]
    return views.PreviewView(
        template=template,
        text=brief.text,
        tokens=sum(part.tokens for part in parts if not part.dropped),
        parts=tuple(parts),
        material=given.of,
        warnings=check.warnings(name, edits[name], edits) if name in edits else (),
    )
