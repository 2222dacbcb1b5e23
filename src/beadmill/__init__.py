"""Beadmill: a coding ticket becomes a planned, reviewed, tested change made by coding agents."""

__version__ = "0.1.0"
