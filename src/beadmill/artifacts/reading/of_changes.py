"""``changes`` and ``gap_resolutions`` of refined and revised documents (reference §2.5, §2.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from beadmill.artifacts.base import Document
from beadmill.artifacts.council import Change, Inspiration, Resolution
from beadmill.artifacts.diff import changes as real_changes
from beadmill.artifacts.reading.ask import given, names, need, twice
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.replies import ChangeReply, Refined, Revised
from beadmill.artifacts.reading.shape import Context
from beadmill.artifacts.reading.stable_ids import restored
from beadmill.artifacts.reading.tree import Unfit

D = TypeVar("D", bound=Document)
Check = Callable[[D, Context, Notes], D]

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
    document = check(document, context, notes)
    out, interventions = real_changes(before, document, claimed)
    notes.extend(interventions)
    return document, out


def _change(reply: ChangeReply, context: Context, notes: Notes) -> Change:
    kind = reply.type.strip().lower()
    if kind not in ("modified", "replaced", "added", "removed"):
        raise Unfit(f"changes: {reply.type!r} is not modified, replaced, added or removed")
    inspiration = _inspiration(reply, context)
    lost = reply.inspiration is not None and inspiration is None
    if lost:
        notes.add("attribution", "semantic_validation", "inspiration names no shown draft", reply.id)
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
    return Inspiration(draft=seat, item=reply.inspiration.item) if isinstance(seat, int) else None


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
