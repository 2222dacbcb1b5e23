"""Shape: what one prompt wants back, and Reading: what a reply turned out to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from beadmill.artifacts.council import Intervention
from beadmill.artifacts.reading.clean import CLOSING
from beadmill.artifacts.reading.fit import Aliases
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.schema import strict_schema
from beadmill.artifacts.reading.tree import Tree

T = TypeVar("T")
Context = Mapping[str, object]
Failure = Literal["", "empty", "echo", "parse", "validation", "truncated"]
Form = Literal["yaml", "json", "jsonl", "text"]


def _same(tree: Tree, _context: Context, _notes: Notes) -> Tree:
    return tree


def _whole(value: Any, _context: Context, _notes: Notes) -> Any:
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Shape(Generic[T]):
    """``model`` is what the model writes; ``check`` turns it into ``T`` or raises Unfit.

    ``context`` names the keys that ``read(…, context=)`` may be given, with their meaning; all are optional and each
    switches on the checks that need it.
    """

    name: str
    model: type[BaseModel]
    tag: str = ""
    form: Form = "yaml"
    aliases: Aliases = field(default_factory=dict)
    prepare: Callable[[Tree, Context, Notes], Tree] = _same  # before keys are matched to the model
    normalise: Callable[[Tree, Context, Notes], Tree] = _same  # after
    check: Callable[[Any, Context, Notes], Any] = _whole
    root: str = ""  # the list that a bare list at the top stands for
    owned: frozenset[str] = frozenset()  # top-level keys that Beadmill fills: ignored when a model writes them
    example: str = ""
    rules: tuple[str, ...] = ()  # what the format cannot say
    context: Mapping[str, str] = field(default_factory=dict)
    end_tag: str = ""  # a second tag that ends a conversation (TURN)
    finish: Callable[[], Any] | None = None  # the value that ``end_tag`` stands for
    marker: bool = False  # counts only between its tags or as the whole reply: an example or a quotation is none
    last_may_go: bool = False  # the last entry of ``root`` is dropped when the reply was cut

    def json_schema(self, context: Context | None = None) -> dict[str, Any]:
        """Self-contained, strict (every property required, no other allowed). VOTES needs its context for that."""
        return strict_schema(self.model, leave_out=self.owned, name=self.name, context=context or {})

    def format_help(self) -> str:
        """The last section of a prompt: keys by example, the tag if any, no fences."""
        if self.form == "text":
            return f"## Reply format\n\n{CLOSING} Plain text, no heading, no code fence.\n"
        what = {"yaml": "YAML", "json": "JSON", "jsonl": "JSONL: one JSON object per line"}[self.form]
        lines = ["## Reply format", "", f"{CLOSING} {what}, with these keys and no others."]
        lines += ["No code fence, no text before or after it."]
        if self.tag:
            lines += [f"Put it between <{self.tag}> and </{self.tag}>."]
        lines += [f"- {rule}" for rule in self.rules]
        body = f"<{self.tag}>\n{self.example.strip()}\n</{self.tag}>" if self.tag else self.example.strip()
        return "\n".join([*lines, "", "Example of the format (not of the content):", "", body, ""])


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """``value`` when accepted; else ``failure`` says which kind of re-ask is due and ``error`` what to tell the model."""

    value: T | None
    failure: Failure = ""
    error: str = ""
    interventions: tuple[Intervention, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.failure
