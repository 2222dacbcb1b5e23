"""Every unit that is a plain multiple of another: name -> (quantity, how many base units it is)."""

FACTORS = {
    "metre": ("length", 1.0),
    "kilometre": ("length", 1000.0),
    "mile": ("length", 1609.344),
    "foot": ("length", 0.3048),
    "inch": ("length", 0.0254),
    "kilogram": ("mass", 1.0),
    "gram": ("mass", 0.001),
    "pound": ("mass", 0.45359237),
    "ounce": ("mass", 0.028349523125),
}


def quantities() -> dict[str, list[str]]:
    """Quantity -> its units, both in alphabetical order."""
    found: dict[str, list[str]] = {}
    for name, (quantity, _) in sorted(FACTORS.items()):
        found.setdefault(quantity, []).append(name)
    return dict(sorted(found.items()))
