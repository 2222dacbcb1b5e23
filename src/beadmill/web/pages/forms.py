"""Forms of the screens: text fields as posted, and the layer of settings that a ticket or project may set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from beadmill.errors import Invalid


@dataclass(frozen=True, slots=True)
class Posted:
    """The fields of a form. ``get`` is the last value of a name, ``all`` every one."""

    fields: Mapping[str, tuple[str, ...]]

    def get(self, name: str, otherwise: str = "") -> str:
        return self.fields.get(name, (otherwise,))[-1]

    def all(self, name: str) -> tuple[str, ...]:
        return self.fields.get(name, ())

    def starting(self, prefix: str) -> dict[str, str]:
        return {name.removeprefix(prefix): self.get(name) for name in self.fields if name.startswith(prefix)}


async def posted(request: Request) -> Posted:
    """Files are not taken anywhere, so they are left out. Line ends become plain."""
    form = await request.form()
    names = dict.fromkeys(form.keys())
    return Posted({n: tuple(_text(v) for v in form.getlist(n) if isinstance(v, str)) for n in names})


def _text(value: str) -> str:
    """As typed: with line ends of one kind, and without what no database text may hold."""
    return value.replace("\r\n", "\n").replace("\0", "")


# --- settings of one ticket or project ----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Setting:
    """One field of the settings form. ``path`` is its place in RunSettings; ``kind`` seats, choice, or a number."""

    path: str
    label: str
    kind: str
    options: tuple[str, ...] = ()
    hint: str = ""

    @property
    def name(self) -> str:
        return f"set.{self.path}"


POLICIES = ("required", "auto_when_clean", "off")
PROOFS = ("flag", "fail", "off")
SETTINGS = (
    Setting("council.seats", "Council seats", "seats", hint="one a line: agent/model/effort, the first one implements"),
    Setting("council.mode", "Planning", "choice", ("council", "solo")),
    Setting("gates.interview", "Approve the interview", "choice", POLICIES),
    Setting("gates.prd", "Approve the requirements", "choice", POLICIES),
    Setting("gates.beads", "Approve the plan", "choice", POLICIES),
    Setting("gates.setup", "Approve the workspace setup", "choice", POLICIES),
    Setting("council.interview_questions", "Most interview questions", "integer"),
    Setting("build.attempts", "Tries per bead", "integer"),
    Setting("build.red_on_base", "New tests must fail without the change", "choice", PROOFS),
    Setting("build.tamper", "Weakened tests", "choice", PROOFS),
    Setting("build.review", "Independent review", "choice", PROOFS),
    Setting("budget.usd", "Budget in US dollars", "number"),
    Setting("budget.tokens", "Budget in tokens", "integer"),
    Setting("budget.minutes", "Budget in agent minutes", "number"),
)


def layer(form: Posted, before: Mapping[str, Any]) -> dict[str, Any]:
    """``before`` with the fields of the form laid over it; an empty field means "as inherited". Raises Invalid."""
    out: dict[str, Any] = {group: dict(v) if isinstance(v, dict) else v for group, v in before.items()}
    for setting in SETTINGS:
        if setting.name not in form.fields:
            continue
        group, _, leaf = setting.path.partition(".")
        inner = out.setdefault(group, {})
        value = _value(setting, form.get(setting.name).strip())
        if value is None:
            inner.pop(leaf, None)
        else:
            inner[leaf] = value
    return {group: v for group, v in out.items() if v != {}}


def _value(setting: Setting, text: str) -> Any:
    if not text:
        return None
    if setting.kind == "seats":
        return [line.strip() for line in text.splitlines() if line.strip()]
    if setting.kind == "choice":
        return text
    try:
        return int(text) if setting.kind == "integer" else float(text)
    except ValueError:
        raise Invalid(
            f"{setting.label}: {text!r} is no number", code="NUMBER", kept="your input", next="write digits, or nothing"
        ) from None


def found(values: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, None when it is not there."""
    at: Any = values
    for name in path.split("."):
        at = at.get(name) if isinstance(at, Mapping) else None
    return at


def shown(setting: Setting, value: Any) -> str:
    """As the field's text."""
    if value is None:
        return ""
    if setting.kind == "seats":
        return "\n".join(seat(one) for one in value)
    return str(value)


def seat(one: Any) -> str:
    if isinstance(one, Mapping):
        return "/".join(str(one.get(k) or "") for k in ("agent", "model", "effort")).rstrip("/")
    return str(one)


def mapping(text: str) -> dict[str, Any]:
    """A YAML mapping that a person typed. Raises Invalid with the line."""
    try:
        value = YAML(typ="safe", pure=True).load(text) if text.strip() else {}
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise Invalid(
            f"line {line}: {error.problem}", code="YAML", kept="your input", next="correct the line"
        ) from error
    if not isinstance(value, dict):
        raise Invalid("settings are a mapping of names to values", code="YAML", kept="your input")
    return dict(value)
