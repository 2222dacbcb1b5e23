"""The command line: ``python3 -m units``."""

import argparse
import sys
from collections.abc import Sequence

from units.convert import convert
from units.table import quantities


def parser() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    top = argparse.ArgumentParser(prog="units", description="Convert between units of measure.")
    commands = top.add_subparsers(dest="command", required=True)
    one = commands.add_parser("convert", help="convert one value")
    one.add_argument("value", type=float)
    one.add_argument("source")
    one.add_argument("target")
    commands.add_parser("list", help="list every unit")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0 = done, 1 = the input cannot be converted."""
    args = parser().parse_args(argv)
    if args.command == "list":
        return show_units()
    return show_one(args.value, args.source, args.target)


def show_units() -> int:
    for quantity, names in quantities().items():
        print(f"{quantity}: {', '.join(names)}")
    return 0


def show_one(value: float, source: str, target: str) -> int:
    try:
        result = convert(value, source, target)
    except ValueError as error:
        print(f"units: {error}", file=sys.stderr)
        return 1
    print(f"{value:g} {source} = {result:g} {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
