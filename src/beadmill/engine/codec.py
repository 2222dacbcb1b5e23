"""Step results: encoded by the act's return annotation, decoded by the same, on the first run too."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from beadmill.domain.values import Json
from beadmill.errors import Blocked


def _function(act: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(act, functools.partial):
        act = act.func
    return act if inspect.isroutine(act) else type(act).__call__


@functools.lru_cache(maxsize=512)
def _adapter(function: Callable[..., Any]) -> TypeAdapter[Any]:
    return TypeAdapter(typing.get_type_hints(function).get("return", Any))


def adapter(act: Callable[..., Any]) -> TypeAdapter[Any]:
    function = _function(act)
    return _adapter(getattr(function, "__func__", function))


def takes_key(act: Callable[..., Any]) -> bool:
    """True when the act has a parameter ``key`` that is not bound yet."""
    bound: dict[str, Any] = {}
    probe = act
    while isinstance(probe, functools.partial):
        bound |= probe.keywords
        probe = probe.func
    return "key" not in bound and "key" in inspect.signature(_function(probe)).parameters


def encode(act: Callable[..., Any], value: Any) -> Json:
    return adapter(act).dump_python(value, mode="json")


def decode(act: Callable[..., Any], name: str, value: Json) -> Any:
    """Raises Blocked when the row was written by a release whose type this one cannot read."""
    try:
        return adapter(act).validate_python(value)
    except ValidationError as error:
        raise Blocked(
            "RESULT_UNREADABLE",
            f"The recorded result of {name} cannot be read by this release: {error.errors()[0]['msg']}",
            forget=(name,),
            kept="the recorded result",
            next="retry does this step again; or go back to the release that wrote it",
        ) from error
