from __future__ import annotations

from tests.engine.conftest import bench, store

__all__ = ["bench", "store"]
