"""A template, allow-listed parts and the reply's format become one Brief with its ledger."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from beadmill.artifacts.reading.shape import Shape
from beadmill.briefs.catalog import DROP_ORDER, SHEETS, TITLES, Sheet
from beadmill.domain.values import Brief, Part, Sha, estimate_tokens
from beadmill.errors import Blocked, NotFound, Refused

BUILT_IN = Path(__file__).parent / "templates"
REPLY_SHOWN = 50_000  # characters of a rejected reply that a re-ask shows
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PartText:
    """One allow-listed part with its text. Several of one name (drafts) are shown under one title, in order."""

    name: str
    text: str
    version: int = 0

    def line(self, *, dropped: bool = False) -> Part:
        return Part(self.name, _sha(self.text), estimate_tokens(self.text), self.version, dropped)


class Briefs:
    """``overrides`` is the folder of edited templates in the data home; a broken one falls back to the built-in."""

    def __init__(self, overrides: Path | None = None, *, budget: int = 100_000) -> None:
        self.overrides = overrides
        self.budget = budget
        self._built_in = _environment(BUILT_IN)
        self._edited = _environment(overrides, BUILT_IN) if overrides else self._built_in

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
        body, edited = self._render(template, {"subject": subject, **values})
        form = shape.format_help().strip() if shape else ""
        kept = fit(template, sheet, ordered, self.budget - estimate_tokens(_assemble(head, body, (), form)))
        name = "instructions (edited)" if edited else "instructions"
        instructions = Part(name, _sha(body + form), estimate_tokens(f"{head}\n{body}\n{form}"))
        ledger = (instructions, *(part.line(dropped=part not in kept) for part in ordered))
        return Brief(template, _assemble(head, body, kept, form), ledger, subject)

    def within(self, budget: int) -> Briefs:
        """The same templates with another token budget (a run's ``context_tokens``)."""
        return self if budget == self.budget else Briefs(self.overrides, budget=budget)

    def source(self, template: str) -> str:
        """The text of the built-in template. Raises NotFound."""
        _sheet(template)
        return (BUILT_IN / f"{template}.md.j2").read_text(encoding="utf-8")

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

    def _render(self, template: str, values: dict[str, Any]) -> tuple[str, bool]:
        """The text, and whether an edited template gave it."""
        name = f"{template}.md.j2"
        if self.overrides and (self.overrides / name).is_file():
            try:
                return self._edited.get_template(name).render(values).strip(), True
            except (TemplateError, TypeError, ValueError, LookupError, ArithmeticError) as error:
                _log.warning("the edited prompt %s cannot be used (%s): the built-in one was taken", template, error)
        return self._built_in.get_template(name).render(values).strip(), False


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


def _sha(text: str) -> Sha:
    return Sha(hashlib.sha256(text.encode()).hexdigest())


def _sheet(template: str) -> Sheet:
    if template not in SHEETS:
        raise NotFound(f"there is no prompt template {template!r}", code="TEMPLATE_NOT_FOUND")
    return SHEETS[template]


def _environment(*folders: Path) -> SandboxedEnvironment:
    return SandboxedEnvironment(
        loader=FileSystemLoader([str(folder) for folder in folders]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # an include ends its line, so the blank line behind it stays one
        autoescape=False,  # the output is a prompt, not a page
    )
