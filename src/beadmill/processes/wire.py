"""Values ⇄ JSON for the session folder. Standard library only; driven by the dataclasses' own annotations."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from beadmill.domain.ended import END_TYPES, Ended, Lost, Ran
from beadmill.domain.values import Json
from beadmill.processes.spec import AgentTask, AnswerOrder, Batch, Hold, Order, Release, Service, Steer, Stop

T = TypeVar("T")
_ORDERS: Mapping[str, type] = {c.__name__: c for c in (Steer, AnswerOrder, Hold, Release, Stop)}
_WORK: Mapping[str, type] = {c.__name__: c for c in (AgentTask, Batch, Service)}


class BadWire(ValueError):
    """The JSON is not what the type says: names the type and the value."""


def encode(value: object) -> Json:
    """Paths become strings, times ISO text, durations seconds, tuples lists, dataclasses objects."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [encode(v) for v in value]
    return value


def decode(kind: type[T], data: Json) -> T:
    """The inverse of ``encode``. Unknown keys are ignored, so an older reader survives a newer writer. Raises BadWire."""
    try:
        return cast("T", _decode(kind, data))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise BadWire(f"{getattr(kind, '__name__', kind)}: {error}") from error


def _decode(kind: Any, data: Json) -> Any:
    if kind is Any or data is None:
        return data
    if isinstance(kind, NewType):
        return _decode(kind.__supertype__, data)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _decode_fields(kind, data)
    if get_origin(kind) is not None:
        return _decode_generic(kind, data)
    if isinstance(kind, type):
        return _decode_plain(kind, data)
    raise BadWire(f"no codec for {kind!r}")


def _decode_fields(kind: type, data: Mapping[str, Json]) -> Any:
    hints = _hints(kind)
    return kind(**{name: _decode(hint, data[name]) for name, hint in hints.items() if name in data})


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in dataclasses.fields(kind)}


def _decode_generic(kind: Any, data: Json) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _decode(next(a for a in args if a is not types.NoneType), data)
    if origin is Literal:
        if data not in args:
            raise BadWire(f"{data!r} is none of {args}")
        return data
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_decode(args[0], v) for v in data)
        return tuple(_decode(a, v) for a, v in zip(args, data, strict=True))
    if issubclass(origin, Mapping):
        return {k: _decode(args[1], v) for k, v in data.items()}
    if issubclass(origin, Sequence):
        return [_decode(args[0], v) for v in data]
    raise BadWire(f"no codec for {kind!r}")


def _decode_plain(kind: type, data: Json) -> Any:
    if kind is datetime:
        return datetime.fromisoformat(data)
    if kind is timedelta:
        return timedelta(seconds=data)
    if issubclass(kind, PurePath):
        return kind(data)
    if issubclass(kind, Enum):
        return kind(data)
    if kind is float and isinstance(data, int):
        return float(data)
    if not isinstance(data, kind):
        raise BadWire(f"{data!r} is not {kind.__name__}")
    return data


def _tagged(value: object) -> Json:
    return {"type": type(value).__name__, **encode(value)}


def _untag(known: Mapping[str, type], data: Mapping[str, Json]) -> Any:
    name = data.get("type", "")
    if name not in known:
        raise BadWire(f"unknown type {name!r}")
    return decode(known[name], data)


def encode_end(end: Ended | Ran | Lost) -> Json:
    """``{"type": "Replied", …}``."""
    return _tagged(end)


def decode_end(data: Json) -> Ended | Ran | Lost:
    return cast("Ended | Ran | Lost", _untag(END_TYPES, data))


def encode_order(order: Order) -> Json:
    return _tagged(order)


def decode_order(data: Json) -> Order:
    return cast("Order", _untag(_ORDERS, data))


def encode_work(work: AgentTask | Batch | Service) -> Json:
    return _tagged(work)


def decode_work(data: Json) -> AgentTask | Batch | Service:
    return cast("AgentTask | Batch | Service", _untag(_WORK, data))
