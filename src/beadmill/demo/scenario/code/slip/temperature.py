"""Temperatures: a factor alone cannot convert them, because their scales start at different points. Kelvin is the base."""

SCALES = ("celsius", "fahrenheit", "kelvin")
CELSIUS_ZERO = 273.15  # in kelvin
DEGREE_FAHRENHEIT = 5 / 9  # in kelvin


class BelowAbsoluteZero(ValueError):
    """Nothing is colder than 0 kelvin."""


def to_kelvin(value: float, scale: str) -> float:
    """Raises BelowAbsoluteZero."""
    kelvin = value
    if scale == "celsius":
        kelvin = value + CELSIUS_ZERO
    elif scale == "fahrenheit":
        kelvin = (value - 32) * DEGREE_FAHRENHEIT + CELSIUS_ZERO
    if kelvin < 0:
        raise BelowAbsoluteZero(f"{value:g} {scale} is below absolute zero")
    return kelvin


def from_kelvin(kelvin: float, scale: str) -> float:
    if scale == "celsius":
        return kelvin - CELSIUS_ZERO
    if scale == "fahrenheit":
        return (kelvin - CELSIUS_ZERO) / DEGREE_FAHRENHEIT + 32
    return kelvin
