"""The settings of a run as fields of a form: in groups, each with what it would inherit and from where."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from beadmill.errors import BeadmillError, Invalid
from beadmill.leaves import leaves
from beadmill.operations import views
from beadmill.web.pages.forms import Posted, seat

Layer = Literal["file", "project", "ticket"]
PREFIX = "set."


@dataclass(frozen=True, slots=True)
class Field:
    """``own`` is the text of this layer, "" = inherited. ``inherited`` comes from ``source``. ``over`` names what lies
    over this layer, so that a value here would not count."""

    setting: views.SettingView
    own: str
    inherited: str
    source: str
    over: str
    error: str

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.setting.path}"

    @property
    def live(self) -> bool:
        return leaves()[self.setting.path].live


@dataclass(frozen=True, slots=True)
class Group:
    """``open``: something here is set, wrong, or must be set before a ticket can start."""

    name: str
    fields: tuple[Field, ...]

    @property
    def open(self) -> bool:
        return any(f.own or f.error or (f.setting.kind == "seats" and not f.inherited) for f in self.fields)


def groups(
    view: views.SettingsView, layer: Layer, given: Posted | None = None, error: BeadmillError | None = None
) -> tuple[Group, ...]:
    """``given`` is what was typed and could not be saved because of ``error``."""
    wrong = error.details.get("fields", {}) if error else {}
    found: dict[str, list[Field]] = {}
    for one in view.settings:
        found.setdefault(one.group, []).append(_field(one, layer, given, _said(wrong, one.path)))
    return tuple(Group(name, tuple(fields)) for name, fields in found.items())


def _field(setting: views.SettingView, layer: Layer, given: Posted | None, error: str) -> Field:
    names = list(setting.layers)
    at = names.index(layer) if layer in names else len(names)
    below = [name for name in names[:at] if name != "run"]
    over = [name for name in names[at + 1 :] if name != "run"]
    own = text(setting.kind, setting.layers[layer], none=setting.optional) if layer in names else ""
    inherited = text(setting.kind, setting.layers[below[-1]])
    typed = own if given is None else given.get(f"{PREFIX}{setting.path}", own)
    return Field(setting, typed, inherited, below[-1], over[-1] if over else "", error)


def _said(wrong: Mapping[str, str], path: str) -> str:
    """Of the field itself, or of a part of its value."""
    return "; ".join(what for where, what in wrong.items() if where == path or where.startswith(f"{path}."))


def text(kind: str, value: Any, *, none: bool = False) -> str:
    """A value as the text of its field. ``none``: a value that is nothing is the word for it."""
    if value is None:
        return "none" if none else ""
    match kind:
        case "seats":
            return "\n".join(seat(one) for one in value)
        case "lines":
            return "\n".join(value)
        case "seat":
            return seat(value)
        case "switch":
            return json.dumps(value)
    return str(value)


def changes(form: Posted, view: views.SettingsView, layer: Layer) -> dict[str, Any]:
    """What of the form differs from what this layer has, as ``settings.change`` takes it. Raises Invalid."""
    out: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for setting, typed in _posted(form, view.settings):
        own = setting.layers.get(layer)
        if layer in setting.layers and typed == text(setting.kind, own, none=setting.optional):
            continue
        if not typed and layer not in setting.layers:
            continue
        try:
            out[setting.path] = value(setting.kind, typed)
        except ValueError:
            wrong[setting.path] = f"{typed!r} is no number"
    if wrong:
        raise Invalid(
            "; ".join(f"{path}: {said}" for path, said in wrong.items()),
            code="NUMBER",
            details={"fields": wrong},
            kept="your input",
            next="write digits, or nothing",
        )
    return out


def _posted(form: Posted, settings: Sequence[views.SettingView]) -> Iterator[tuple[views.SettingView, str]]:
    for setting in settings:
        name = f"{PREFIX}{setting.path}"
        if name in form.fields:
            yield setting, form.get(name).strip()


def value(kind: str, typed: str) -> Any:
    """Nothing typed = None, inherited. Raises ValueError for what is no number."""
    if not typed:
        return None
    match kind:
        case "seats" | "lines":
            return [line.strip() for line in typed.splitlines() if line.strip()]
        case "switch":
            return typed == "true"
        case "integer" | "number" if typed != "none":
            return int(typed) if kind == "integer" else float(typed)
    return typed
