"""Convert a value from one unit to another."""

from units.table import FACTORS


class UnknownUnit(ValueError):
    """No unit has this name."""


class MixedQuantities(ValueError):
    """A length cannot become a mass."""


def convert(value: float, source: str, target: str) -> float:
    """``value`` of ``source`` expressed in ``target``. Raises UnknownUnit or MixedQuantities."""
    quantity, factor = _look_up(source)
    other, divisor = _look_up(target)
    if quantity != other:
        raise MixedQuantities(f"{source} measures {quantity}, {target} measures {other}")
    return value * factor / divisor


def _look_up(name: str) -> tuple[str, float]:
    try:
        return FACTORS[name]
    except KeyError:
        raise UnknownUnit(f"no unit is called {name!r}") from None
