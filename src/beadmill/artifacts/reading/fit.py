"""Lay a tree of text along a model: keys, single values, words. Nothing is made up; what goes is recorded."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.tree import Branch, Rows, Tree, Unfit
from beadmill.domain.command import CommandSpec

Aliases = Mapping[str, tuple[str, ...]]  # field name → other spellings, for every model of the document


@dataclass(slots=True)
class Fit:
    aliases: Aliases
    notes: Notes
    elsewhere: frozenset[str] = frozenset()  # squashed field names of all parts of the document
    _keys: dict[type[BaseModel], dict[str, str]] = field(default_factory=dict)

    def model(self, model: type[BaseModel], value: Tree, path: str = "") -> Tree:
        """Keys of ``model`` in its own spelling. Precedence is fixed: own name, then aliases in their order."""
        if not isinstance(value, dict):
            return value
        taken = self._match(model, self._nest(model, value, path), path)
        out: dict[str, Tree] = {}
        for name, info in model.model_fields.items():
            if name not in taken:
                continue
            item = taken[name]
            if item is None and not info.is_required():
                continue  # an empty value is an absent one
            out[name] = self.value(info.annotation, item, f"{path}.{name}".lstrip("."))
        return out

    def _match(self, model: type[BaseModel], value: Mapping[str, Tree], path: str) -> dict[str, Tree]:
        known = self.keys(model)
        found: dict[str, tuple[int, str]] = {}
        for key in value:
            name = known.get(squash(key))
            if name is None:
                self._unknown(key, value[key], path)
                continue
            rank = self._rank(name, key)
            if name in found:
                self._other(value, key, found[name][1], path)
            if name not in found or rank < found[name][0]:
                found[name] = (rank, key)
        for name, (_, key) in found.items():
            if key != name and squash(key) != squash(name):
                self.notes.cleaned("key renamed", f"{path}.{key} → {name}".lstrip("."))
        return {name: value[key] for name, (_, key) in found.items()}

    def _other(self, value: Mapping[str, Tree], key: str, earlier: str, path: str) -> None:
        """Two spellings of one key: precedence decides, and what is lost is said."""
        if value[key] != value[earlier]:
            self.notes.dropped("other spelling of a key left out", f"{path}.{earlier} or {key}".lstrip("."))

    def _unknown(self, key: str, value: Tree, path: str) -> None:
        """A key of another part of the document that holds a list or mapping is in the wrong place, not superfluous."""
        where = f"{path}.{key}".lstrip(".")
        if value and not isinstance(value, str) and squash(key) in self.elsewhere:
            raise Unfit(f"{where}: this key belongs to another part of the document")
        self.notes.dropped("unknown key left out", where)

    def _nest(self, model: type[BaseModel], value: dict[str, Tree], path: str) -> dict[str, Tree]:
        """``guidance:`` with nothing under it and its keys beside it: the keys go under it."""
        known = self.keys(model)
        for key in [k for k, v in value.items() if v is None and squash(k) in known]:
            inner = plain(model.model_fields[known[squash(key)]].annotation)
            if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
                continue
            below = [k for k in value if squash(k) not in known and squash(k) in self.keys(inner)]
            if below:
                self.notes.fixed("keys moved under the key they belong to", f"{path}.{key}".lstrip("."))
                kept = {k: v for k, v in value.items() if k not in below}
                value = kept | {key: {k: value[k] for k in below}}
        return value

    def _rank(self, name: str, key: str) -> int:
        if key == name:
            return 0
        if squash(key) == squash(name):
            return 1
        others = [squash(a) for a in self.aliases.get(name, ())]
        return 2 + others.index(squash(key)) if squash(key) in others else len(others) + 2

    def keys(self, model: type[BaseModel]) -> dict[str, str]:
        """Squashed spelling → field name. A field's own name beats another field's alias."""
        if model not in self._keys:
            out: dict[str, str] = {}
            for name in model.model_fields:
                for other in self.aliases.get(name, ()):
                    out.setdefault(squash(other), name)
            out |= {squash(name): name for name in model.model_fields}
            self._keys[model] = out
        return self._keys[model]

    def value(self, annotation: Any, value: Tree, path: str) -> Tree:
        kind = plain(annotation)
        if value is None:
            return [] if get_origin(kind) is tuple else None
        if kind is str:
            return self._text(value, path)
        if kind is CommandSpec or kind is Any:
            return value
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self.model(kind, value, path)
        origin = get_origin(kind)
        if origin is tuple:
            return self._list(get_args(kind)[0], value, path)
        if origin is dict and isinstance(value, dict):
            return {k: self.value(get_args(kind)[1], v, f"{path}.{k}") for k, v in value.items()}
        if origin is Literal and isinstance(value, str):
            return self._word(get_args(kind), value, path)
        return value

    def _text(self, value: Tree, path: str) -> Tree:
        if isinstance(value, str):
            return value
        text = flat(value)
        if text is None:
            return value
        self.notes.cleaned("a sentence that was read as a mapping or list is text again", f"{path}: {text}")
        return text

    def _list(self, inner: Any, value: Tree, path: str) -> Tree:
        kind = plain(inner)
        if isinstance(value, dict):
            value = self._list_of_mapping(kind, value, path)
        elif not isinstance(value, list):
            self.notes.cleaned("a single value became a list of one", path)
            value = [value]
        return [self.value(inner, item, f"{path}.{n}") for n, item in enumerate(value)]

    def _list_of_mapping(self, kind: Any, value: dict[str, Tree], path: str) -> list[Tree]:
        """``{Q01: {…}, Q02: {…}}`` where records with ids are wanted; else a list of one."""
        record = isinstance(kind, type) and issubclass(kind, BaseModel) and "id" in kind.model_fields
        if record and value and all(isinstance(v, dict) for v in value.values()):
            self.notes.cleaned("a mapping by id became a list", path)
            return [{"id": key} | item for key, item in value.items()]
        self.notes.cleaned("a single value became a list of one", path)
        return [value]

    def _word(self, words: tuple[Any, ...], value: str, path: str) -> Tree:
        for word in words:
            if str(word) == value:
                return word
        for word in words:
            if squash(str(word)) == squash(value):
                self.notes.cleaned("word in the wanted spelling", f"{path}: {value} → {word}")
                return word
        return value


def flat(value: Tree) -> str | None:
    """The text that a mapping or list was written as, or its scalars line by line; None = it cannot be one text."""
    if isinstance(value, str):
        return value
    if isinstance(value, (Branch, Rows)) and value.span is not None:
        return value.span.written()
    if isinstance(value, dict) and value and all(v is None or isinstance(v, str) for v in value.values()):
        return "\n".join(_pair(k, v) for k, v in value.items())
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        return "\n".join(value)
    return None


def _pair(key: str, value: str | None) -> str:
    return f"{key}: {value}" if value else f"{key}:"


def plain(annotation: Any) -> Any:
    """Without Annotated and without ``| None``."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return plain(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        rest = [a for a in get_args(annotation) if a is not type(None)]
        return plain(rest[0]) if len(rest) == 1 else annotation
    return annotation
