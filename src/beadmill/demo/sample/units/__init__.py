"""Conversions between units of measure."""

from units.convert import MixedQuantities, UnknownUnit, convert

__all__ = ["MixedQuantities", "UnknownUnit", "convert"]
