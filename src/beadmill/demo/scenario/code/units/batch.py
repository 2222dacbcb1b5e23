"""Files of measurements: one ``value,source,target`` per line."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """One line that can be read. ``line`` counts from 1."""

    line: int
    value: float
    source: str
    target: str


@dataclass(frozen=True)
class BadLine:
    """One line that cannot, and why."""

    line: int
    reason: str


def read(lines: Iterable[str]) -> Iterator[Measurement | BadLine]:
    """Every line in its order; blank lines and lines that start with ``#`` are left out."""
    for number, text in enumerate(lines, start=1):
        text = text.strip()
        if text and not text.startswith("#"):
            yield _read_line(number, text)


def _read_line(number: int, text: str) -> Measurement | BadLine:
    fields = [field.strip() for field in text.split(",")]
    if len(fields) != 3:
        return BadLine(number, f"expected value,source,target, found {len(fields)} fields")
    try:
        return Measurement(number, float(fields[0]), fields[1], fields[2])
    except ValueError:
        return BadLine(number, f"{fields[0]!r} is not a number")
