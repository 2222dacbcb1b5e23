"""``changes`` and ``gap_resolutions`` of refined and revised documents (reference §2.5, §2.6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from beadmill.artifacts.base import Document
from beadmill.artifacts.council import Change, Inspiration, Resolution
from beadmill.artifacts.diff import Item, items
from beadmill.artifacts.diff import changes as real_changes
from beadmill.artifacts.reading.ask import given, names, need, rows, twice
from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.replies import ChangeReply, Refined, Revised
from beadmill.artifacts.reading.shape import Context
from beadmill.artifacts.reading.stable_ids import restored
from beadmill.artifacts.reading.tree import Tree, Unfit

D = TypeVar("D", bound=Document)
Check = Callable[[D, Context, Notes], D]

_LABELS = ("label", "title", "question", "prompt", "name")
CHANGE_ALIASES = {
    "type": ("change", "change_type", "kind"),
    "item_type": ("item", "kind_of_item"),
    "draft": ("alternative_draft", "draft_number", "alternative"),
    "gap_resolutions": ("resolutions",),
    "rationale": ("reason", "why"),
}


def refined(model: type[D], check: Check[D]) -> Callable[[Any, Context, Notes], Refined[D]]:
    def run(reply: BaseModel, context: Context, notes: Notes) -> Refined[D]:
        return Refined(*_checked(model, check, reply=reply, context=context, notes=notes))

    return run


def revised(model: type[D], check: Check[D]) -> Callable[[Any, Context, Notes], Revised[D]]:
    def run(reply: BaseModel, context: Context, notes: Notes) -> Revised[D]:
        document, changes = _checked(model, check, reply=reply, context=context, notes=notes)
        return Revised(document, changes, _resolutions(getattr(reply, "gap_resolutions", ()), context))

    return run


def _checked(
    model: type[D], check: Check[D], *, reply: BaseModel, context: Context, notes: Notes
) -> tuple[D, tuple[Change, ...]]:
    """The document with stable ids, checked, and its changes against the real difference."""
    claimed = tuple(_change(one, context, notes) for one in getattr(reply, "changes", ()))
    document = cast("D", model.model_construct(**{name: getattr(reply, name) for name in model.model_fields}))
    before = given(context, "before", model)
    if before is None:
        return check(document, context, notes), claimed
    document, claimed = restored(before, document, claimed=claimed, notes=notes)
    need([line for claim in claimed if (line := _moved(claim, before, document))])
    document = check(document, context, notes)
    out, interventions = real_changes(before, document, claimed)
    gone = [change.id for change in out if change.type == "removed"]
    if gone and "changes" not in reply.model_fields_set:
        raise Unfit(
            f"changes: missing, and so are {', '.join(gone)}; send the whole document with its changes", cut=True
        )
    notes.extend(interventions)
    return document, out


def _moved(claim: Change, before: Document, after: Document) -> str:
    """What is wrong with a modified item that has another id than before; '' when nothing is."""
    old, new = _named(before, claim, claim.before), _named(after, claim, claim.after)
    if claim.type != "modified" or old is None or new is None or old.id == new.id:
        return ""
    return f"changes: {old.id} → {new.id}: a modified {old.item_type} keeps its id"


def _named(document: Document, claim: Change, words: str) -> Item | None:
    """The one item of the claimed type whose id or label is written."""
    same_type = [item for item in items(document) if claim.item_type in ("", item.item_type)]
    found = [item for item in same_type if words.strip() in (item.id, item.label.strip())]
    return found[0] if len(found) == 1 else None


def plain_changes(tree: Tree, _context: Context, notes: Notes) -> Tree:
    """Records, labels and the reference's longer words where one word or number is wanted."""
    for key in tree if isinstance(tree, dict) else ():
        if squash(key) == "changes":
            for row in rows(tree, key):
                _plain_sides(row, notes)
        elif squash(key) in ("gapresolutions", "resolutions"):
            for row in rows(tree, key):
                if squash(str(row.get("action"))) in ("updatedprd", "updatedbeads"):
                    notes.cleaned("action in the wanted spelling", f"{row['action']} → updated")
                    row["action"] = "updated"
    return tree


def _plain_sides(row: dict[str, Tree], notes: Notes) -> None:
    """``before: {id: US-1, label: Save}`` → ``before: Save``, and the change gets the id when it has none; ``Draft 3``
    → ``3``."""
    for side in ("after", "before"):
        if isinstance(row.get(side), dict):
            whole = {squash(k): v for k, v in row[side].items() if isinstance(v, str)}
            label = next((whole[k] for k in _LABELS if k in whole), whole.get("id", ""))
            row[side] = label
            if "id" in whole and not row.get("id"):
                row["id"] = whole["id"]
            notes.cleaned("item of a change written as its label", label)
    source: Tree = row.get("inspiration")
    for key, value in list(source.items()) if isinstance(source, dict) else []:
        found = re.fullmatch(r"\s*draft[\s_#-]*(\d{1,3})\s*", str(value), re.IGNORECASE)
        if found and squash(key) != "item":
            source[key] = found[1]
            notes.cleaned("label of a draft read as its number", str(value))


def _change(reply: ChangeReply, context: Context, notes: Notes) -> Change:
    kind = reply.type.strip().lower()
    if kind not in ("modified", "replaced", "added", "removed"):
        raise Unfit(f"changes: {reply.type!r} is not modified, replaced, added or removed")
    inspiration = _inspiration(reply, context)
    lost = reply.inspiration is not None and inspiration is None
    if lost:
        notes.add("attribution", "semantic_validation", "inspiration names nothing that was shown", reply.id)
    return Change.model_validate(
        {
            "type": kind,
            "item_type": reply.item_type,
            "id": reply.id,
            "before": reply.before,
            "after": reply.after,
            "inspiration": inspiration,
            "attribution": "inspired" if inspiration else "invalid_unattributed" if lost else "model_unattributed",
        }
    )


def _inspiration(reply: ChangeReply, context: Context) -> Inspiration | None:
    if reply.inspiration is None:
        return None
    seats = given(context, "alternatives", Mapping)  # type: ignore[type-abstract]
    if seats is None:
        return Inspiration(draft=reply.inspiration.draft, item=reply.inspiration.item)
    seat = seats.get(reply.inspiration.draft)
    shown = (given(context, "shown", Mapping) or {}).get(reply.inspiration.draft)  # type: ignore[type-abstract]
    if not isinstance(seat, int) or (isinstance(shown, Document) and not _in(shown, reply.inspiration.item)):
        return None
    return Inspiration(draft=seat, item=reply.inspiration.item)


def _in(shown: Document, words: str) -> bool:
    """Whether the words name a part of that draft: an id in them, a label, a section; no words name the whole draft."""
    said = squash(words)
    ids = {item.id for item in items(shown)}
    labels = {squash(item.label) for item in items(shown)} | {squash(name) for name in type(shown).model_fields}
    named = any(token.strip(".,;:()\"'") in ids for token in words.split())
    return not said or said in labels or said in {squash(one) for one in ids} or named


def _resolutions(found: tuple[Resolution, ...], context: Context) -> tuple[Resolution, ...]:
    """Exactly one per supplied gap, in the gaps' order."""
    gaps = names(context, "gaps")
    if gaps is None:
        return found
    said = [one.gap for one in found]
    wrong = [f"gap_resolutions: resolved twice: {gap}" for gap in twice(said)]
    wrong += [f"gap_resolutions: missing: {gap}" for gap in gaps if gap not in said]
    wrong += [f"gap_resolutions: not a supplied gap: {gap}" for gap in said if gap not in gaps]
    wrong += [
        f"gap_resolutions: left_unresolved touches no item: {one.gap}"
        for one in found
        if one.action == "left_unresolved" and one.affected_items
    ]
    decided = names(context, "decided") or ()
    wrong += [
        f"gap_resolutions: the person has decided this, so it is not left_unresolved: {one.gap}"
        for one in found
        if one.action == "left_unresolved" and one.gap in decided
    ]
    need(wrong)
    by_gap = {one.gap: one for one in found}
    return tuple(by_gap[gap] for gap in dict.fromkeys(gaps))
