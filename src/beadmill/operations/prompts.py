"""Prompts: what every session is told. A person may edit each; an edit counts for runs that start after it."""

from __future__ import annotations

import asyncio
import difflib
from typing import Any

from beadmill.briefs import about, check
from beadmill.briefs.catalog import SHEETS, Sheet
from beadmill.briefs.folder import Folder
from beadmill.briefs.part import sha_of
from beadmill.briefs.source import SUFFIX, Edits, built_in, is_snippet, reach, users, values_of
from beadmill.domain.values import Actor, Event, Permission
from beadmill.errors import Missing, Stale, Unavailable
from beadmill.operations import views
from beadmill.operations._preview import KEPT, assembled, laid, material, refuse, template_of
from beadmill.operations._prompts import folder
from beadmill.operations.ports import Ports
from beadmill.operations.receipts import once
from beadmill.operations.rules import require
from beadmill.store.db import Tx


async def listing(ports: Ports, *, actor: Actor) -> views.PromptsView:
    """Every prompt in the order a ticket meets them, then the snippets they share."""
    require(actor, Permission.READ)
    return await asyncio.to_thread(_listed, folder(ports))


async def show(ports: Ports, name: str, *, actor: Actor) -> views.PromptView:
    """Raises NotFound."""
    require(actor, Permission.READ)
    return await asyncio.to_thread(_view, folder(ports), name)


async def save(
    ports: Ports, name: str, text: str, *, etag: str | None, actor: Actor, key: str = ""
) -> views.PromptView:
    """Runs that start from now on use it; the view's ``warnings`` say what it no longer does.

    Raises NotFound, Missing without ``etag``, Stale when it is not the prompt's sha256 any more, Unprocessable with line
    and reason for a text that cannot be used.
    """
    require(actor, Permission.ADMIN)
    built_in(name)

    def act(tx: Tx) -> str:
        where = folder(ports)
        _current(where, name, etag)
        _usable(where, name, text)
        where.save(name, text)
        tx.emit(Event("prompt.saved", {"name": name, "sha256": sha_of(text)}), actor=actor)
        return name

    await _once(ports, key, "prompts.save", {"name": name, "text": text}, actor=actor, act=act)
    return await show(ports, name, actor=actor)


async def revert(ports: Ports, name: str, *, etag: str | None, actor: Actor, key: str = "") -> views.RevertedView:
    """Back to the built-in text; the edit is kept aside. Raises NotFound, Missing, Stale."""
    require(actor, Permission.ADMIN)
    built_in(name)

    def act(tx: Tx) -> str:
        where = folder(ports)
        _current(where, name, etag)
        return _reverted(tx, where, name, actor)

    kept = await _once(ports, key, "prompts.revert", {"name": name}, actor=actor, act=act)
    now = await show(ports, name, actor=actor)
    return views.RevertedView(**now.model_dump(), kept=kept)


async def reset(ports: Ports, *, actor: Actor, key: str = "") -> views.PromptsView:
    """Every prompt back to its built-in text; the edits are kept aside."""
    require(actor, Permission.ADMIN)

    def act(tx: Tx) -> list[str]:
        where = folder(ports)
        return [_reverted(tx, where, name, actor) for name in where.edits()]

    await _once(ports, key, "prompts.reset", {}, actor=actor, act=act)
    return await listing(ports, actor=actor)


async def preview(
    ports: Ports, name: str, *, actor: Actor, text: str | None = None, run: str = ""
) -> views.PreviewView:
    """The assembled prompt with ``text`` in place of what is stored; a snippet within the first prompt that uses it.

    With sample material, or with that of the newest session of ``run`` which had this template; the values of the
    template's own sentences stay samples. Raises NotFound, Unprocessable with line and reason.
    """
    require(actor, Permission.READ)
    edits = await asyncio.to_thread(laid, folder(ports), name, text)
    template = template_of(name, edits)
    given = await ports.store.read(lambda conn: material(conn, template, run))
    return await asyncio.to_thread(assembled, name, template, edits, given)


# --- views --------------------------------------------------------------------------------------------------------
def _listed(where: Folder) -> views.PromptsView:
    edits = where.edits()
    lines = [views.PromptLine(**_line(where, edits, name)) for prompts in about.ABOUT.values() for name in prompts]
    return views.PromptsView(folder=str(where.path), prompts=tuple(lines), strangers=where.strangers())


def _line(where: Folder, edits: Edits, name: str) -> dict[str, Any]:
    text = edits.get(name)
    checked = check.checked(edits)
    fault = checked.faults.get(name)
    base = where.base(name) if name in edits else None
    sheet = SHEETS.get(name, Sheet(()))
    return {
        "name": name,
        "stage": about.stage(name),
        "purpose": about.purpose(name),
        "modified": name in edits,
        "fault": views.FaultView(line=fault.line, reason=fault.reason) if fault else None,
        "warnings": check.warnings(name, text, checked.good) if text is not None and not fault else (),
        "built_in_changed": None if name in edits and base is None else base is not None and base != built_in(name),
        "sha256": sha_of(text if text is not None else built_in(name)),
        "parts": sheet.parts,
        "needs": tuple(part for part in sheet.parts if sheet.holds(part)),
    }


def _view(where: Folder, name: str) -> views.PromptView:
    ours = built_in(name)
    edits = where.edits()
    edited = edits.get(name)
    good = check.checked(edits).good
    base = where.base(name) if name in edits else None
    return views.PromptView(
        **_line(where, edits, name),
        text=edited if edited is not None else ours,
        built_in=ours,
        edited=edited,
        diff=_diff(ours, edited, f"{name}{SUFFIX} built in", f"{name}{SUFFIX} edited"),
        news=_diff(base, ours, f"{name}{SUFFIX} built in before", f"{name}{SUFFIX} built in now"),
        includes=tuple(sorted(reach(name, good) - {name})),
        used_by=users(name, good) if is_snippet(name) else (),
        values=tuple(sorted(values_of(ours))),
    )


def _diff(before: str | None, after: str | None, left: str, right: str) -> str:
    if before is None or after is None:
        return ""
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), left, right)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


# --- acts ---------------------------------------------------------------------------------------------------------
def _current(where: Folder, name: str, etag: str | None) -> None:
    if etag is None:
        raise Missing(
            "say which version of the prompt you edited (If-Match)",
            code="IF_MATCH_REQUIRED",
            kept=KEPT,
            next=f"beadmill prompt show {name} says its sha256",
        )
    now = where.read(name) if where.edited(name) else None
    sha = sha_of(now if now is not None else built_in(name))
    if etag != sha:
        raise Stale(
            f"the prompt {name} was changed since you read it",
            code="PROMPT_STALE",
            details={"name": name, "sha256": sha, "yours": etag},
            kept=KEPT,
            next=f"compare with beadmill prompt show {name}, then save over the version it shows",
        )


def _usable(where: Folder, name: str, text: str) -> None:
    """Raises Unprocessable also when another edit could not be used beside it."""
    edits = where.edits()
    before, after = check.checked(edits).faults, check.checked({**edits, name: text}).faults
    refuse(name, after.get(name))
    for other in after.keys() - before.keys():
        refuse(name, check.Fault(0, f"the edited prompt {other} would break: {after[other]}"))


def _reverted(tx: Tx, where: Folder, name: str, actor: Actor) -> str:
    if not where.edited(name):
        return ""
    kept = str(where.revert(name))
    tx.emit(Event("prompt.reverted", {"name": name, "kept": kept}), actor=actor)
    return kept


async def _once(ports: Ports, key: str, operation: str, request: Any, *, actor: Actor, act: Any) -> Any:
    try:
        return await ports.store.write(
            lambda tx: once(tx, key, operation=operation, actor=actor, request=request, now=tx.now, act=lambda: act(tx))
        )
    except OSError as error:
        where = folder(ports).path
        raise Unavailable(
            f"{where} cannot be written: {error}", code="PROMPTS_UNWRITABLE", kept=KEPT, next=f"make {where} writable"
        ) from error
