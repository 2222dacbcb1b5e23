"""Items that survive a refinement keep their ids (lifecycle §2.5): a list that was numbered anew is put right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Blueprint
from beadmill.artifacts.council import Change
from beadmill.artifacts.diff import Item, items
from beadmill.artifacts.interview import Questions
from beadmill.artifacts.prd import Prd
from beadmill.artifacts.reading.notes import Notes

D = TypeVar("D", bound=Document)
Key = tuple[str, str]  # item type, id
Renames = Mapping[Key, str]


def renames(before: Document, after: Document) -> dict[Key, str]:
    """Only what can be proved: the label is word for word that of exactly one item before and one after, its id
    changed, and the item that took its old id over is new. The new item gets the id that becomes free."""
    old, new = _by_label(items(before)), _by_label(items(after))
    moved = {new[label].key: old[label].id for label in new if label in old and new[label].id != old[label].id}
    holders = {item.key: item for item in items(after)}
    known = {(item.item_type, item.label) for item in items(before)}
    out: dict[Key, str] = {}
    free = {kind: [key[1] for key in moved if key[0] == kind] for kind in {key[0] for key in moved}}
    targets = {(key[0], name) for key, name in moved.items()}
    for key, name in moved.items():
        holder = holders.get((key[0], name))
        if holder is not None and holder.key not in moved and (holder.item_type, holder.label) in known:
            return {}  # two survivors claim one id: not to be told apart
        out[key] = name
    for kind, names in free.items():
        left = [name for name in names if (kind, name) not in targets]
        for key in [k for k in holders if k in targets and k[0] == kind and k not in moved]:
            if not left:
                return {}
            out[key] = left.pop(0)
    return out


def _by_label(found: Sequence[Item]) -> dict[Key, Item]:
    """Items whose label nobody else of their type has."""
    times = Counter((item.item_type, item.label.strip()) for item in found)
    return {(i.item_type, i.label.strip()): i for i in found if times[i.item_type, i.label.strip()] == 1}


def restored(before: Document, after: D, *, claimed: Sequence[Change], notes: Notes) -> tuple[D, tuple[Change, ...]]:
    """The document with its survivors' ids, and the claims speaking of the same ids."""
    names = renames(before, after)
    if not names:
        return after, tuple(claimed)
    for (kind, old), new in names.items():
        notes.add("attribution", "semantic_validation", f"{kind} id restored", f"{old} → {new}")
    claims = [c.model_copy(update={"id": names.get((c.item_type, c.id), c.id)}) for c in claimed]
    return _renamed(after, names), tuple(claims)


def _renamed(document: D, names: Renames) -> D:
    if isinstance(document, Questions):
        rows = [q.model_copy(update={"id": names.get(("question", q.id), q.id)}) for q in document.questions]
        return cast("D", document.model_copy(update={"questions": tuple(rows)}))
    if isinstance(document, Blueprint):
        beads = [b.model_copy(update={"id": names.get(("bead", b.id), b.id)}) for b in document.beads]
        return cast("D", document.model_copy(update={"beads": tuple(beads)}))
    if isinstance(document, Prd):
        return cast("D", _renamed_prd(document, names))
    return document


def _renamed_prd(document: Prd, names: Renames) -> Prd:
    epics = []
    for epic in document.epics:
        stories = [s.model_copy(update={"id": names.get(("user_story", s.id), s.id)}) for s in epic.user_stories]
        new = {"id": names.get(("epic", epic.id), epic.id), "user_stories": tuple(stories)}
        epics.append(epic.model_copy(update=new))
    return document.model_copy(update={"epics": tuple(epics)})
