"""Convert a value from one unit to another."""

from units.table import FACTORS
from units.temperature import SCALES, from_kelvin, to_kelvin


class UnknownUnit(ValueError):
    """No unit has this name."""


class MixedQuantities(ValueError):
    """A length cannot become a mass."""


def convert(value: float, source: str, target: str) -> float:
    """``value`` of ``source`` expressed in ``target``. Raises UnknownUnit, MixedQuantities or BelowAbsoluteZero."""
    quantity, other = _quantity(source), _quantity(target)
    if quantity != other:
        raise MixedQuantities(f"{source} measures {quantity}, {target} measures {other}")
    if quantity == "temperature":
        return from_kelvin(to_kelvin(value, source), target)
    return value * FACTORS[source][1] / FACTORS[target][1]


def _quantity(name: str) -> str:
    if name in SCALES:
        return "temperature"
    try:
        return FACTORS[name][0]
    except KeyError:
        raise UnknownUnit(f"no unit is called {name!r}") from None
