"""A template, allow-listed parts and the reply's format become one Brief with its ledger."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from beadmill.artifacts.reading.shape import Shape
from beadmill.briefs.catalog import DROP_ORDER, SHEETS, TITLES, Sheet
from beadmill.briefs.check import checked
from beadmill.briefs.folder import Folder
from beadmill.briefs.part import PartText, sha_of
from beadmill.briefs.source import FAILURES, SUFFIX, Edits, environment, reach
from beadmill.domain.values import Brief, Part, estimate_tokens
from beadmill.errors import Blocked, NotFound, Refused

REPLY_SHOWN = 50_000  # characters of a rejected reply that a re-ask shows
_log = logging.getLogger(__name__)


class Briefs:
    """``overrides`` is the folder of edited templates in the data home; ``edits`` are texts that a run froze, which then
    count instead of the folder. A broken edit is passed over: the built-in text is given, and the ledger says why."""

    def __init__(
        self, overrides: Path | None = None, *, budget: int = 100_000, edits: Mapping[str, str | None] | None = None
    ) -> None:
        self.overrides = overrides
        self.budget = budget
        self.edits = edits

    def write(
        self,
        template: str,
        parts: Sequence[PartText],
        *,
        ticket: str = "",
        subject: str = "",
        seat: str = "",
        turn: str = "",
        shape: Shape[Any] | None = None,
        **values: Any,
    ) -> Brief:
        """Raises NotFound for an unknown template, Refused for a part that is not on its list, Blocked with
        CONTEXT_OVER_BUDGET when what may not be dropped does not fit."""
        sheet = _sheet(template)
        refuse_strangers(template, sheet, parts)
        ordered = sorted((p for p in parts if p.text.strip()), key=lambda part: sheet.parts.index(part.name))
        head = "Beadmill task: " + " | ".join(
            [_field(template), *(f"{k}: {_field(v)}" for k, v in _heads(ticket, subject, seat, turn))]
        )
        given = dict(_heads(ticket, subject, seat, turn))
        body, name, note = self._render(template, {**given, **values})
        form = shape.format_help().strip() if shape else ""
        kept = fit(template, sheet, ordered, self.budget - estimate_tokens(_assemble(head, body, (), form)))
        instructions = Part(name, sha_of(body + form), estimate_tokens(f"{head}\n{body}\n{form}"), note=note)
        ledger = (instructions, *(part.line(dropped=part not in kept) for part in ordered))
        return Brief(template, _assemble(head, body, kept, form), ledger, subject)

    def within(self, budget: int, edits: Mapping[str, str | None] | None = None) -> Briefs:
        """With a run's own token budget (``context_tokens``) and the edits it froze; None = those of the folder."""
        return Briefs(self.overrides, budget=budget, edits=edits)

    def repair(self, original: Brief, *, error: str, reply: str, shape: Shape[Any]) -> Brief:
        """The re-ask in the same conversation: what was wrong, the reply (≤ 50,000 characters), the form."""
        heads = dict(
            field.split(": ", 1) for field in original.text.split("\n", 1)[0].split(" | ")[1:] if ": " in field
        )
        shown = PartText("previous_reply", reply[:REPLY_SHOWN])
        known = {name: heads.get(name, "").strip() for name in ("ticket", "seat", "turn")}
        return self.write(
            "repair",
            [shown],
            subject=original.subject,
            shape=shape,
            error=error.strip() or "it does not have the form that was asked for",
            reply_cut=len(reply) > REPLY_SHOWN,
            **known,
        )

    def _render(self, template: str, values: dict[str, Any]) -> tuple[str, str, str]:
        """The text, what the ledger calls it, and why an edit was passed over ("" = none was)."""
        edits = self._edits()
        known = checked(edits)
        note = "; ".join(
            f"{name}: {found}" for name, found in known.faults.items() if name in _parts_of(template, edits)
        )
        used = reach(template, known.good) & set(known.good)
        if used:
            try:
                text = environment(known.good).get_template(f"{template}{SUFFIX}").render(values).strip()
            except FAILURES as error:
                note = "; ".join(filter(None, (note, f"{', '.join(sorted(used))}: {error}")))
            else:
                return text, "instructions (edited)", _passed_over(note)
        if note:
            _log.warning("an edited prompt cannot be used (%s): the built-in one was taken", note)
        text = environment({}).get_template(f"{template}{SUFFIX}").render(values).strip()
        return text, "instructions", _passed_over(note)

    def _edits(self) -> Edits:
        if self.edits is not None:
            return self.edits
        return Folder(self.overrides).edits() if self.overrides else {}


def _parts_of(template: str, edits: Edits) -> frozenset[str]:
    """The template, its built-in snippets and those of its edit, as far as that can be parsed."""
    names = reach(template, {})
    text = edits.get(template)
    if text is None or template in checked(edits).faults:
        return names
    return names | reach(template, {template: text})


def _passed_over(note: str) -> str:
    return f"the built-in text was given, since the edit cannot be used: {note}" if note else ""


def refuse_strangers(template: str, sheet: Sheet, parts: Iterable[PartText]) -> None:
    """Raises Refused when a part is not on the template's allow-list."""
    strangers = sorted({part.name for part in parts} - set(sheet.parts))
    if strangers:
        raise Refused(
            f"the brief {template!r} may not be given {', '.join(strangers)}",
            code="CONTEXT_NOT_ALLOWED",
            next=f"allowed: {', '.join(sheet.parts)}",
        )


def fit(template: str, sheet: Sheet, parts: Sequence[PartText], room: int) -> tuple[PartText, ...]:
    """Whole parts go, in the stated order, until the rest fits into ``room`` tokens."""
    kept = list(parts)
    for name in DROP_ORDER:
        if _cost(kept) <= room:
            break
        if not sheet.holds(name):
            kept = [part for part in kept if part.name != name]
    if _cost(kept) > room:
        raise Blocked(
            "CONTEXT_OVER_BUDGET",
            f"the brief {template!r} needs about {_cost(kept)} tokens of material and has room for {max(room, 0)}",
            details={"parts": {part.name: estimate_tokens(part.text) for part in kept}},
            next="raise context_tokens in the settings, or make the artifacts it shows smaller",
        )
    return tuple(kept)


def _cost(parts: Sequence[PartText]) -> int:
    return estimate_tokens(_material(parts))


def _assemble(head: str, body: str, parts: Sequence[PartText], form: str) -> str:
    return "\n\n".join(block for block in (head, body, _material(parts), form) if block) + "\n"


def _material(parts: Sequence[PartText]) -> str:
    """One section per name; the tags tell material from instruction, so a closing tag inside is defused."""
    if not parts:
        return ""
    sections = ["# Material"]
    for name, group in groupby(parts, key=lambda part: part.name):
        text = "\n\n".join(part.text.strip("\n") for part in group).replace(f"</{name}>", f"<\\/{name}>")
        sections.append(f"## {TITLES[name]}\n\n<{name}>\n{text}\n</{name}>")
    return "\n\n".join(sections)


def _heads(ticket: str, subject: str, seat: str, turn: str) -> tuple[tuple[str, str], ...]:
    return ("ticket", ticket), ("subject", subject), ("seat", seat), ("turn", turn)


def _field(value: str) -> str:
    return " ".join(str(value).replace("|", "/").split())


def _sheet(template: str) -> Sheet:
    if template not in SHEETS:
        raise NotFound(f"there is no prompt template {template!r}", code="TEMPLATE_NOT_FOUND")
    return SHEETS[template]
