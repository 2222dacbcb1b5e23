"""What really differs between two documents, item by item, and whether claimed changes say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from beadmill.artifacts.base import Document, Record
from beadmill.artifacts.beads import Beads, Blueprint
from beadmill.artifacts.council import Change, Intervention
from beadmill.artifacts.interview import Interview, Questions
from beadmill.artifacts.prd import Prd


@dataclass(frozen=True, slots=True)
class Item:
    """A part with its own id that people review: question, epic, user story, bead."""

    item_type: str
    id: str
    label: str
    body: Record

    @property
    def key(self) -> tuple[str, str]:
        return (self.item_type, self.id)


def items(document: Document) -> tuple[Item, ...]:
    """In document order. A document without items has none."""
    if isinstance(document, Questions):
        return tuple(Item("question", q.id, q.question, q) for q in document.questions)
    if isinstance(document, Interview):
        return tuple(Item("question", q.id, q.prompt, q) for q in document.questions)
    if isinstance(document, Prd):
        found: list[Item] = []
        for epic in document.epics:
            found.append(Item("epic", epic.id, epic.title, epic.model_copy(update={"user_stories": ()})))
            found += [Item("user_story", story.id, story.title, story) for story in epic.user_stories]
        return tuple(found)
    if isinstance(document, (Blueprint, Beads)):
        return tuple(Item("bead", bead.id, bead.title, bead) for bead in document.beads)
    return ()


def difference(before: Document, after: Document) -> tuple[Change, ...]:
    """The real diff: items by id, in the order of ``after``, removed ones last; then sections without items."""
    old, new = {item.key: item for item in items(before)}, {item.key: item for item in items(after)}
    out: list[Change] = []
    for key, item in new.items():
        if key not in old:
            out.append(_change("added", item.item_type, item.id, "", item.label))
        elif old[key].body != item.body:
            out.append(_change("modified", item.item_type, item.id, old[key].label, item.label))
    out += [_change("removed", i.item_type, i.id, i.label, "") for key, i in old.items() if key not in new]
    return (*out, *_sections(before, after))


_ITEM_FIELDS = frozenset({"questions", "epics", "beads"})
_STAMPS = frozenset(
    {"ticket_id", "status", "source_interview", "approval", "generated_by", "schema_version", "artifact"}
)


def _sections(before: Document, after: Document) -> list[Change]:
    """Top-level parts that have no ids: product, scope, risks …"""
    names = [n for n in type(after).model_fields if n not in _ITEM_FIELDS | _STAMPS]
    return [
        _change("modified", "section", name, name, name)
        for name in names
        if getattr(before, name, None) != getattr(after, name)
    ]


def _change(kind: str, item_type: str, name: str, before: str, after: str) -> Change:
    return Change.model_validate(
        {
            "type": kind,
            "item_type": item_type,
            "id": name,
            "before": before,
            "after": after,
            "attribution": "synthesized_unattributed",
        }
    )


def changes(
    before: Document, after: Document, claimed: Sequence[Change]
) -> tuple[tuple[Change, ...], tuple[Intervention, ...]]:
    """The real difference, each entry with the attribution that was claimed for it.

    A claim without a difference is dropped, a difference without a claim is synthesised as unattributed, and of two
    claims for one item that disagree about their inspiration neither inspiration counts.
    """
    notes: list[Intervention] = []
    by_item: dict[tuple[str, str], list[Change]] = {}
    for claim in claimed:
        by_item.setdefault(_key(claim, before, after), []).append(claim)
    out: list[Change] = []
    for real in difference(before, after):
        claims = by_item.pop((real.item_type, real.id), [])
        out.append(_attributed(real, claims, notes))
    notes += [
        _note("dropped", "claimed change is no difference", f"{left[0].type} {left[0].id or left[0].after}")
        for left in by_item.values()
    ]
    return tuple(out), tuple(notes)


def _attributed(real: Change, claims: Sequence[Change], notes: list[Intervention]) -> Change:
    if not claims:
        notes.append(_note("synthesized", "difference that no change explains", f"{real.type} {real.id}"))
        return real
    kinds = {(c.inspiration.draft, c.inspiration.item) if c.inspiration else None for c in claims}
    first = claims[0]
    if len(claims) > 1:
        title = "two changes for one item" + (", their inspiration dropped" if len(kinds) > 1 else "")
        notes.append(_note("dropped", title, real.id))
    if len(kinds) > 1:
        return real.model_copy(update={"attribution": "invalid_unattributed"})
    kind = "replaced" if real.type == "modified" and first.type == "replaced" else real.type
    if kind != first.type:
        notes.append(_note("attribution", "kind of change corrected", f"{real.id}: {first.type} → {kind}"))
    return real.model_copy(update={"type": kind, "inspiration": first.inspiration, "attribution": first.attribution})


def _key(claim: Change, before: Document, after: Document) -> tuple[str, str]:
    """Which item a claim is about: by id, else by the one item with that label."""
    everything = {item.key: item for item in (*items(before), *items(after))}
    by_id = [key for key in everything if key[1] == claim.id]
    if len(by_id) == 1:
        return by_id[0]
    words = {claim.after.strip(), claim.before.strip(), claim.id.strip()} - {""}
    by_label = [key for key, item in everything.items() if item.label.strip() in words]
    if len(by_label) == 1:
        return by_label[0]
    return ("section", claim.id) if claim.id in type(after).model_fields else (claim.item_type, claim.id)


def _note(category: str, title: str, detail: str) -> Intervention:
    return Intervention.model_validate(
        {"category": category, "stage": "semantic_validation", "title": title, "detail": detail}
    )
