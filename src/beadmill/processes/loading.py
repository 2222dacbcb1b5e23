"""Adapters and sandboxes by dotted path. Standard library only."""

from __future__ import annotations

import importlib
from typing import Any

from beadmill.errors import Unavailable


def by_path(path: str) -> Any:
    """``package.module:Name``. Raises Unavailable with what could not be loaded and why."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise Unavailable(f"{path} cannot be loaded: {error}", code="NOT_LOADABLE") from error
