"""Documents as models see them: without what is absent, empty or written in every document anyway."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from beadmill.artifacts.command import write_command
from beadmill.artifacts.yaml import dump
from beadmill.domain.command import CommandSpec

# The same in nearly every command; reading it back gives the same command.
_USUAL: Mapping[str, Any] = {"mode": "process", "shell": "posix", "cwd": ".", "env": {}, "args": []}


def lean_yaml(record: BaseModel) -> str:
    """A node that goes on begins again and writes its briefs again, of the same documents: their texts are remembered."""
    return _text(json.dumps(lean(record)))


@functools.lru_cache(maxsize=64)
def _text(plain: str) -> str:
    return dump(json.loads(plain))


def lean(record: BaseModel, *, exclude: frozenset[str] = frozenset()) -> dict[str, Any]:
    """As JSON, without fields that are at an absent default (none, no, zero, empty) or that can have one value only.

    Read back, it is an equal record: what is left out is what the model of the record puts there by itself.
    """
    plain = record.model_dump(mode="json")
    aliased = bool(record.model_config.get("serialize_by_alias"))
    out: dict[str, Any] = {}
    for name, field in type(record).model_fields.items():
        key = field.alias if aliased and field.alias else name
        value = getattr(record, name)
        shown = _shown(value, plain.get(key))
        if name not in exclude and not (_is_default(field, value) and (not shown or _fixed(field))):
            out[key] = shown
    return out


def _shown(value: Any, plain: Any) -> Any:
    if isinstance(value, BaseModel):
        return lean(value)
    if isinstance(value, CommandSpec):
        return {k: v for k, v in write_command(value).items() if _USUAL.get(k, ...) != v}
    if isinstance(value, tuple):
        return [_shown(one, two) for one, two in zip(value, plain, strict=True)]
    if isinstance(value, Mapping):
        return {key: _shown(one, plain[key]) for key, one in value.items()}
    return plain


def _is_default(field: FieldInfo, value: Any) -> bool:
    return not field.is_required() and bool(value == field.get_default(call_default_factory=True))


def _fixed(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
