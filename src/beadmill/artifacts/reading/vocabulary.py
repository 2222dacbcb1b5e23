"""The keys of a document, at every level: what repairs may recognise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

from pydantic import BaseModel

from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.fit import plain
from beadmill.artifacts.reading.shape import Shape
from beadmill.domain.command import CommandSpec


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All squashed. ``top`` = keys of the document, ``every`` = of any part, ``texts`` = those that hold one text."""

    top: frozenset[str]
    fields: frozenset[str]  # own names of the fields of any part, without aliases
    every: frozenset[str]
    texts: frozenset[str]

    def knows(self, key: str) -> bool:
        return squash(key) in self.every

    def begins(self, word: str) -> bool:
        return any(key.startswith(squash(word)) for key in self.every)


@lru_cache(maxsize=64)
def vocabulary(shape: Shape[Any]) -> Vocabulary:
    model, aliases = shape.model, shape.aliases
    fields: set[str] = set()
    every: set[str] = set()
    texts: set[str] = set()
    todo: list[type[BaseModel]] = [model]
    seen: set[type[BaseModel]] = set()
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        for name, info in one.model_fields.items():
            fields.add(squash(name))
            spellings = {squash(name), *(squash(a) for a in aliases.get(name, ()))}
            every |= spellings
            if plain(info.annotation) is str:
                texts |= spellings
            if _commands(info.annotation):
                every |= {"mode", "program", "args", "script", "cwd", "env", "timeoutms", "shell"}
            todo += _models(info.annotation)
    top = frozenset(squash(w) for n in model.model_fields for w in (n, *aliases.get(n, ())))
    return Vocabulary(top, frozenset(fields), frozenset(every), frozenset(texts))


def _models(annotation: Any) -> list[type[BaseModel]]:
    kind = plain(annotation)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    return [m for arg in get_args(kind) for m in _models(arg)]


def _commands(annotation: Any) -> bool:
    kind = plain(annotation)
    return kind is CommandSpec or any(plain(arg) is CommandSpec for arg in get_args(kind))
