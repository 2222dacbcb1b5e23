"""Sizes on a disk in words."""

from __future__ import annotations


def said(size: int) -> str:
    """``1.4 MB``, in steps of 1,000."""
    value = float(size)
    for unit in ("B", "kB", "MB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.5 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
