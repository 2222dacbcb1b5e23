"""Model text → document: extract, repair, normalise, validate; every intervention recorded. No I/O."""

from beadmill.artifacts.reading.pipeline import read
from beadmill.artifacts.reading.shape import Context, Reading, Shape

__all__ = ["Context", "Reading", "Shape", "read"]
