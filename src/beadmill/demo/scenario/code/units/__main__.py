"""The command line: ``python3 -m units``."""

import argparse
import sys
from collections.abc import Sequence

from units.batch import BadLine, Measurement, read
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
    many = commands.add_parser("batch", help="convert a file of value,source,target lines")
    many.add_argument("file")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0 = done, 1 = some input cannot be converted."""
    args = parser().parse_args(argv)
    if args.command == "list":
        return show_units()
    if args.command == "batch":
        return show_file(args.file)
    return show_one(args.value, args.source, args.target)


def show_units() -> int:
    for quantity, names in quantities().items():
        print(f"{quantity}: {', '.join(names)}")
    return 0


def show_one(value: float, source: str, target: str) -> int:
    try:
        print(sentence(value, source, target))
    except ValueError as error:
        print(f"units: {error}", file=sys.stderr)
        return 1
    return 0


def show_file(path: str) -> int:
    """Every line that can be converted is, whatever the others hold."""
    try:
        with open(path, encoding="utf-8") as lines:
            problems = [problem for item in read(lines) if (problem := show_item(item))]
    except (OSError, UnicodeDecodeError) as error:
        print(f"units: {path} cannot be read: {error}", file=sys.stderr)
        return 1
    for problem in problems:
        print(f"units: {path}, {problem}", file=sys.stderr)
    return 1 if problems else 0


def show_item(item: Measurement | BadLine) -> str:
    """Print one converted line; the answer is what went wrong, or nothing."""
    if isinstance(item, BadLine):
        return f"line {item.line}: {item.reason}"
    try:
        print(sentence(item.value, item.source, item.target))
    except ValueError as error:
        return f"line {item.line}: {error}"
    return ""


def sentence(value: float, source: str, target: str) -> str:
    return f"{value:g} {source} = {convert(value, source, target):g} {target}"


if __name__ == "__main__":
    sys.exit(main())
