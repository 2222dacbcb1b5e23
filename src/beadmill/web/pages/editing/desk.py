"""What lies around an editor: the text or fields in it, unsaved words of earlier, and what others saved meanwhile."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from beadmill.artifacts import text as texts
from beadmill.artifacts.base import KINDS
from beadmill.artifacts.yaml import dump, to_yaml
from beadmill.errors import BeadmillError, Stale
from beadmill.operations import artifacts, drafts, views
from beadmill.web.pages.editing.fields import FORMS, leaves
from beadmill.web.pages.editing.form import Read, fill, read
from beadmill.web.pages.forms import Posted
from beadmill.web.pages.screen import Screen

MODES = ("form", "text")


@dataclass(frozen=True, slots=True)
class Draft:
    """Words that were saved while they were typed, and of which version."""

    row: int
    version: int
    revision: int
    updated: str
    mode: str
    given: Posted


@dataclass(frozen=True, slots=True)
class Desk:
    """``over`` is the version that a save replaces: this one, or the newest when the person has seen what differs."""

    document: views.ArtifactView
    versions: tuple[views.ArtifactLine, ...]
    mode: str
    given: Posted
    over: views.ArtifactLine
    revision: int = 0
    loaded: str = ""  # when the draft in the editor was saved
    offers: tuple[Draft, ...] = ()
    meanwhile: str = ""  # from the newest version to what is in the editor, as a unified diff
    problems: tuple[Mapping[str, Any], ...] = ()
    wrong: Mapping[str, str] = field(default_factory=dict)
    checked: bool = False  # the text, without a problem when there is none
    fresh: str = ""  # the item of the form that was just added or moved
    error: BeadmillError | None = None

    @property
    def held(self) -> bool:
        """Autosave would replace the words that are still offered."""
        return any(offer.row == self.document.row for offer in self.offers)

    @property
    def newer(self) -> views.ArtifactLine | None:
        return self.versions[-1] if self.versions[-1].version > self.document.version else None

    def label(self, name: str) -> str:
        """What a field of the form is called, with the ids of the items it is in."""
        labels = {one.key: one.label for one in leaves(FORMS[self.document.kind])}
        parts = name.split(".")
        ids = [self.given.get(".".join([*parts[:n], "id"])) for n in range(1, len(parts) + 1)]
        words = [id_ or labels.get(part, "") for part, id_ in zip(parts, ids, strict=True)]
        return " › ".join(word for word in words if word) or name

    @property
    def damaged(self) -> tuple[Mapping[str, Any], ...]:
        """Each line of the text that has a problem, once."""
        return tuple({p["line"]: p for p in reversed(self.problems) if p["line"] and p["text"].strip()}.values())[::-1]


async def versions_of(on: Screen, found: views.ArtifactLine) -> tuple[views.ArtifactLine, ...]:
    every = await artifacts.listing(on.ports, run=found.run, kind=found.kind, actor=on.actor, limit=200)
    return tuple(sorted(every.items, key=lambda line: line.version))


async def offered(on: Screen, versions: Sequence[views.ArtifactLine]) -> tuple[Draft, ...]:
    """Unsaved words on any version of this document, and never of another run's."""
    number = {str(line.row): line.version for line in versions}
    found = [draft_of(one, number[one.target]) for one in await drafts.among(on.ports, list(number), actor=on.actor)]
    return tuple(one for one in found if one.mode in MODES)


def draft_of(view: views.DraftView, version: int) -> Draft:
    body = view.body if isinstance(view.body, dict) else {}
    fields = {n: tuple(map(str, v)) if isinstance(v, list) else (str(v),) for n, v in body.items()}
    given = Posted(fields)
    return Draft(int(view.target), version, view.revision, view.updated or "", given.get("mode"), given)


async def opened(on: Screen, row: int, mode: str, *, resume: bool = False) -> Desk:
    """The editor of a version. ``resume`` puts the unsaved words of this version into it."""
    found = await artifacts.show(on.ports, row, actor=on.actor)
    versions = await versions_of(on, found)
    every = await offered(on, versions)
    own = next((one for one in every if one.row == row), None)
    mode = own.mode if resume and own else mode
    mode = "form" if mode == "form" and found.kind in FORMS else "text"
    given = own.given if resume and own else untouched(found, mode)
    offers = tuple(one for one in every if not (resume and one is own))
    desk = Desk(
        found,
        versions,
        mode,
        given,
        over=versions[-1],
        revision=own.revision if own else 0,
        loaded=own.updated if resume and own else "",
        offers=offers,
    )
    return await _compared(on, desk) if desk.newer else desk


def untouched(found: views.ArtifactView, mode: str) -> Posted:
    return fill(found.kind, found.document) if mode == "form" else Posted({"text": (found.text,)})


async def again(on: Screen, row: int, mode: str, given: Posted, *, compare: bool = True, **more: Any) -> Desk:
    """The editor with what was just typed. Words that were offered beside it are offered still."""
    found = await artifacts.show(on.ports, row, actor=on.actor)
    versions = await versions_of(on, found)
    error = more.get("error")
    over = next((v for v in versions if str(v.row) == given.get("over")), versions[-1])
    revision = int(given.get("revision") or 0) if given.get("revision").isdecimal() else 0
    if isinstance(error, Stale):
        over = versions[-1]
    offers = await offered(on, versions) if given.get("held") else ()
    desk = Desk(found, versions, mode, given, over=over, revision=revision, offers=offers, **more)
    return await _compared(on, desk) if compare and desk.newer else desk


async def _compared(on: Screen, desk: Desk) -> Desk:
    newest = await artifacts.show(on.ports, desk.versions[-1].row, actor=on.actor)
    left, right = await asyncio.to_thread(_sides, desk, newest)
    names = (f"{newest.kind} v{newest.version} ({newest.author})", f"{newest.kind} (yours)")
    lines = difflib.unified_diff(left.splitlines(keepends=True), right.splitlines(keepends=True), *names)
    return replace(desk, meanwhile="".join(lines))


def _sides(desk: Desk, newest: views.ArtifactView) -> tuple[str, str]:
    """Both as YAML; a text that is no document yet stays as it was typed."""
    kind = newest.kind
    if desk.mode == "form":
        value = read_form(desk).value
        document = texts.check_value(kind, value).document
        if document is None:
            return dump(newest.document), dump(json.loads(json.dumps(value, sort_keys=True)))
    else:
        document = texts.check(kind, desk.given.get("text")).document
        if document is None:
            return newest.text, desk.given.get("text")
    return to_yaml(KINDS[kind].model_validate(newest.document)), to_yaml(document)


def read_form(desk: Desk) -> Read:
    return read(desk.document.kind, desk.given, desk.document.document, now=lambda: datetime.now(UTC).isoformat())


def merged(given: Posted) -> str:
    """The text with its repaired lines. A line that was changed in the text as well stays as it is there."""
    lines = given.get("text").split("\n")
    for name, new in given.starting("line.").items():
        was, n = given.get(f"was.{name}"), int(name) - 1 if name.isdecimal() else -1
        if new != was and 0 <= n < len(lines) and lines[n] == was:
            lines[n] = new
    return "\n".join(lines)
