"""A document as the fields of a form and back: nothing typed is lost, and what the form does not show stays as it was.

A list is a field that holds the keys of its items in their order: the number an item had in the document, or ``n1`` …
for a new one. So an item can move, and what the document says beside the form's fields moves with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from beadmill.artifacts.reading.candidates import squash
from beadmill.web.pages.editing.fields import FORMS, Field, repeated
from beadmill.web.pages.editing.values import Wrong, command_read, command_shown, lines_read, lines_shown
from beadmill.web.pages.forms import Posted

Fields = dict[str, tuple[str, ...]]


# --- out ----------------------------------------------------------------------------------------------------------
def fill(kind: str, document: Any) -> Posted:
    """The fields as they are before anybody typed."""
    out: Fields = {}
    _fill(FORMS[kind], document, "", out)
    if kind == "beads":
        keys = {bead["id"]: str(n) for n, bead in enumerate(document["beads"])}
        for n in keys.values():
            name = f"beads.{n}.dependencies.blocked_by"
            out[name] = tuple(keys.get(one[1:], one) for one in out[name])
    return Posted(out)


def _fill(fields: tuple[Field, ...], value: Mapping[str, Any], prefix: str, out: Fields) -> None:
    for one in fields:
        _fill_one(one, value.get(one.key), f"{prefix}{one.key}", out)


def _fill_one(one: Field, value: Any, name: str, out: Fields) -> None:
    match one.kind:
        case "group":
            _fill(one.fields, value or {}, f"{name}.", out)
        case "items" | "commands":
            items = [command_shown(item) for item in value or ()] if one.kind == "commands" else value or ()
            out[name] = tuple(str(n) for n in range(len(items)))
            for n, item in enumerate(items):
                _fill_texts(one, item, f"{name}.{n}.", out)
        case "lines":
            out[name] = (lines_shown(value or ()),)
        case "answer":
            _fill_answer(value or {}, name, out)
        case "after":
            out[name] = tuple(f"={other}" for other in value or ())
        case _:
            out[name] = (str(value if value is not None else ""),)


def _fill_texts(one: Field, item: Mapping[str, Any], prefix: str, out: Fields) -> None:
    if one.kind == "commands":
        out |= {f"{prefix}{key}": (text,) for key, text in item.items()}
    else:
        _fill(one.fields, item, prefix, out)


def _fill_answer(answer: Mapping[str, Any], name: str, out: Fields) -> None:
    out[f"{name}.option"] = tuple(answer.get("selected_option_ids", ()))
    out[f"{name}.text"] = (str(answer.get("free_text", "")),)
    out[f"{name}.skip"] = ("1",) if answer.get("skipped") else ()
    out[f"{name}.reason"] = (str(answer.get("skip_reason") or ""),)


# --- acts: the buttons that change the form and save nothing ------------------------------------------------------
def act(kind: str, form: Posted, wish: str) -> tuple[Posted, str]:
    """The form after ``add:epics``, ``remove:beads.2``, ``up:…`` or ``down:…``, and the item that it was about."""
    verb, _, place = wish.partition(":")
    path, _, key = (place, "", "") if verb == "add" else place.rpartition(".")
    one = repeated(FORMS[kind], path)
    if one is None:
        return form, ""
    fields, order = dict(form.fields), list(form.all(path))
    if verb == "add":
        key = f"n{1 + max((int(k[1:]) for k in order if k[1:].isdecimal() and k[0] == 'n'), default=0)}"
        order.append(key)
        _fill_texts(one, _blank(one, path, form), f"{path}.{key}.", fields)
    elif key in order:
        at = order.index(key)
        order.remove(key)
        if verb != "remove":
            order.insert(max(at - 1, 0) if verb == "up" else at + 1, key)
    return Posted(fields | {path: tuple(order)}), f"{path}.{key}"


def _blank(one: Field, path: str, form: Posted) -> dict[str, Any]:
    if one.kind == "commands":
        return command_shown({"mode": "process"})
    ids = [form.get(f"{path}.{key}.id") for key in form.all(path)]
    if one.one == "epic":
        return {"id": f"EPIC-{_next(ids)}"}
    if one.one == "story":
        epic = form.get(f"{path.rpartition('.')[0]}.id").rpartition("-")[2]
        return {"id": f"US-{epic}-{_next(ids)}"}
    return {"id": f"bead-{_next(ids)}", "issueType": "task"} if one.one == "bead" else {}


def _next(ids: list[str]) -> int:
    numbers = [int(n) for one in ids if (n := one.rpartition("-")[2]).isdecimal()]
    return max(numbers, default=len(ids)) + 1


# --- in -----------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Read:
    """``value`` is the document's JSON; ``wrong`` what could not be read, by the name of its field."""

    value: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # path in the document → name of the field

    def name_of(self, path: str, reason: str) -> str:
        """The field that a problem of the document is about; empty when the form has none for it."""
        parts = path.split(".") if path else []
        inside = bare(path, reason).partition(" ")[0]
        for n in range(len(parts), 0, -1):
            here = ".".join(parts[:n])
            for wanted in (f"{here}.{inside}", here):
                if (name := self.names.get(_plain(wanted))) is not None:
                    return name
        return ""


def bare(path: str, reason: str) -> str:
    """Without the place: it is told at its field."""
    return reason.removeprefix(f"{path}: ")


def _plain(path: str) -> str:
    return ".".join(squash(part) for part in path.split("."))


@dataclass(frozen=True, slots=True)
class _Reader:
    form: Posted
    out: Read
    now: Callable[[], str]

    def group(self, fields: tuple[Field, ...], base: Mapping[str, Any], prefix: str, at: str) -> dict[str, Any]:
        made = dict(base)
        for one in fields:
            name, path = f"{prefix}{one.key}", f"{at}{one.key}"
            self.out.names[_plain(path)] = name
            made[one.key] = self.one(one, base.get(one.key), name, path)
        return made

    def one(self, one: Field, base: Any, name: str, path: str) -> Any:
        match one.kind:
            case "group":
                return self.group(one.fields, base or {}, f"{name}.", f"{path}.")
            case "items" | "commands":
                return self.items(one, base or (), name, path)
            case "lines":
                return lines_read(self.form.get(name))
            case "answer":
                return self.answer(base or {}, name)
            case "after":
                return self.after(name)
            case _:
                text = self.form.get(name)
                return None if one.optional and not text.strip() else text

    def items(self, one: Field, base: Any, name: str, path: str) -> list[Any]:
        made: list[Any] = []
        for key in self.form.all(name):
            here, at = f"{name}.{key}", f"{path}.{len(made)}"
            self.out.names[_plain(at)] = here
            if one.kind == "commands":
                made.append(self.command(here, at))
                continue
            known = base[int(key)] if key.isdecimal() and int(key) < len(base) else {}
            made.append(self.group(one.fields, known, f"{here}.", f"{at}."))
        return made

    def command(self, name: str, path: str) -> Any:
        given = {key: self.form.get(f"{name}.{key}") for key in ("mode", "line", "cwd", "env", "seconds")}
        self.out.names[_plain(path)] = f"{name}.line"
        try:
            return command_read(given)
        except Wrong as error:
            key, _, reason = str(error).partition(": ")
            self.out.wrong[f"{name}.{key}"] = reason
            return {"mode": "shell", "script": given["line"] or "?"}

    def answer(self, base: Mapping[str, Any], name: str) -> dict[str, Any]:
        """A question that was skipped counts as answered as soon as it has an answer."""
        text, chosen = self.form.get(f"{name}.text"), list(self.form.all(f"{name}.option"))
        same = text == base.get("free_text", "") and chosen == list(base.get("selected_option_ids", ()))
        ticked, before = bool(self.form.all(f"{name}.skip")), bool(base.get("skipped"))
        reason = self.form.get(f"{name}.reason").strip()
        if same and ticked == before and (not ticked or reason == (base.get("skip_reason") or "")):
            return dict(base)
        given = bool(text.strip() or chosen)
        skipped = not given or (ticked and (same or not before))
        if skipped:
            made = {"skipped": True, "selected_option_ids": [], "free_text": "", "skip_reason": reason or None}
        else:
            made = {"skipped": False, "selected_option_ids": chosen, "free_text": text, "skip_reason": None}
        return {**made, "answered_by": "user_skip" if skipped else "user", "answered_at": self.now()}

    def after(self, name: str) -> list[str]:
        """Keys of items, so a bead that gets another id in the same form stays what others wait for."""
        parent = name.split(".", 1)[0]
        keys = self.form.all(parent)
        out = [
            one[1:] if one.startswith("=") else self.form.get(f"{parent}.{one}.id")
            for one in self.form.all(name)
            if one.startswith("=") or one in keys
        ]
        return list(dict.fromkeys(out))


def read(kind: str, form: Posted, base: Any, *, now: Callable[[], str]) -> Read:
    """The document that the form says, laid over ``base``, the document it was opened on."""
    out = Read()
    out.value = _Reader(form, out, now).group(FORMS[kind], base, "", "")
    if kind == "beads":
        _own(out.value["beads"])
    return out


def _own(beads: list[dict[str, Any]]) -> None:
    """What the product keeps itself: the order as priority, and no other side of an edge that is gone."""
    before = {bead["id"]: set(bead["dependencies"].get("blocked_by", ())) for bead in beads}
    order = [bead.get("priority", 0) for bead in beads]
    moved = order != sorted(set(order)) or 0 in order
    for n, bead in enumerate(beads, 1):
        bead["priority"] = n if moved else bead["priority"]
        blocks = bead["dependencies"].get("blocks", ())
        bead["dependencies"]["blocks"] = [other for other in blocks if bead["id"] in before.get(other, ())]
