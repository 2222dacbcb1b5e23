"""Single values between a document's JSON and the text fields of a form; each way back is exact."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class Wrong(ValueError):
    """A field that cannot be read; the text is for the person who typed it."""


def lines_shown(items: Iterable[str]) -> str:
    """One item a line; the further lines of an item are indented by two spaces."""
    return "\n".join(_guarded(item).replace("\n", "\n  ") for item in items)


def _guarded(item: str) -> str:
    """A backslash before what would be no item of its own."""
    return f"\\{item}" if not item.split("\n", maxsplit=1)[0].strip() or item[0] in " \\" else item


def lines_read(text: str) -> list[str]:
    out: list[str] = []
    for line in text.split("\n"):
        if line.startswith("  ") and out:
            out[-1] += f"\n{line[2:]}"
        elif line.strip():
            out.append(line.lstrip(" "))
    return [item.removeprefix("\\") for item in out]


def command_shown(spec: Any) -> dict[str, str]:
    """A CommandSpec, or a plain shell line, as the fields of the form."""
    value: Mapping[str, Any] = spec if isinstance(spec, Mapping) else {"mode": "shell", "script": str(spec)}
    shell = value.get("mode") == "shell"
    words = [str(value.get("program", "")), *map(str, value.get("args", ()))]
    line = str(value.get("script", "")) if shell else shlex.join(words) if words[0] else ""
    limit = value.get("timeoutMs")
    return {
        "mode": "shell" if shell else "process",
        "line": line,
        "cwd": str(value.get("cwd", ".")),
        "env": lines_shown(f"{name}={text}" for name, text in value.get("env", {}).items()),
        "seconds": f"{limit / 1000:g}" if limit is not None else "",
    }


def command_read(given: Mapping[str, str]) -> dict[str, Any]:
    """Raises Wrong with the field's key first: ``line: …``."""
    out: dict[str, Any] = {"mode": given.get("mode") or "process"}
    if out["mode"] == "shell":
        out |= {"shell": "posix", "script": given.get("line", "")}
    else:
        words = _words(given.get("line", ""))
        out |= {"program": words[0] if words else "", "args": words[1:]}
    out |= {"cwd": given.get("cwd", "").strip() or ".", "env": _environment(lines_read(given.get("env", "")))}
    if seconds := given.get("seconds", "").strip():
        out["timeoutMs"] = _milliseconds(seconds)
    return out


def _words(line: str) -> Sequence[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise Wrong(f"line: {str(error).lower()}: quote it as in a shell") from None


def _environment(lines: Sequence[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise Wrong(f"env: {line!r} is not NAME=value")
        if name.strip() in out:
            raise Wrong(f"env: {name.strip()} is written twice")
        out[name.strip()] = value
    return out


def _milliseconds(text: str) -> int:
    try:
        return round(float(text) * 1000)
    except (ValueError, OverflowError):
        raise Wrong(f"seconds: {text!r} is no number") from None
