"""What a failed command says: which tests failed, whether the code under test was missing. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from beadmill.domain.ended import CommandResult

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NAMES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^FAILED (?P<name>[^\s(]+::.+?)(?: - .*)?$",  # pytest's summary
        r"^(?P<name>\S+::\S+) FAILED",  # pytest -v
        r"^(?:FAIL|ERROR): (?P<name>\w+ \((?!unittest\.loader)[\w.]+\))",  # unittest
        r"^\s*[✕✖×] (?P<name>.+?)(?: \(?\d[\d.]*\s?m?s\)?)?$",  # jest, vitest, node:test
        r"^\s*not ok \d+ - (?P<name>.+?)(?: # .*)?$",  # TAP
        r"^\s*--- FAIL: (?P<name>\S+)",  # go
        r"^(?P<name>\S+(?:Test|Tests|IT)\w* > .+?) FAILED$",  # gradle
        r"^\[ERROR\]\s+(?P<name>[\w.$]+(?:Test|Tests|IT)\w*\.\w+)(?::\d+|\s+--)",  # surefire
    )
)
_MISSING = re.compile(
    r"ImportError|ModuleNotFoundError|[Ee]rror collecting|errors? during collection|unittest\.loader\._FailedTest"
    r"|Cannot find module|Failed to resolve import|Failed to load url|\[build failed\]|undefined: |cannot find symbol"
    r"|COMPILATION ERROR|Compilation failed|no required module provides|unresolved import"
)
_VARIES = re.compile(
    r"0x[0-9a-f]+|\d+(?:\.\d+)?\s?m?s\b|\d+(?:\.\d+)? seconds|/tmp/\S+|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\S+"
)


_FINDING = re.compile(
    r"^(?P<path>[^\s:()]+\.\w+)(?::\d+(?::\d+)?(?:-\d+)?:?|\(\d+(?:,\d+)?\):)\s+(?P<said>\S.*?)\s*$", re.MULTILINE
)  # path:line:col: words (ruff, mypy, gcc, go vet, shellcheck …), path(line,col): words (tsc, C#)
_UNDER = re.compile(r"^\s+\d+:\d+\s+(?P<said>(?:error|warning)\s+\S.*?)\s*$")  # eslint, below a line with the path
_PATH = re.compile(r"^\S*[/\\]\S+\.\w+$")
MOST_NAMED = 2_000


def plain(output: str) -> str:
    return _ANSI.sub("", output)


def failing_tests(output: str) -> tuple[str, ...]:
    """Names of failed tests in the order of their first mention; empty when the framework is not recognised."""
    text, found = plain(output), dict[str, None]()
    for pattern in _NAMES:
        for match in pattern.finditer(text):
            found.setdefault(match["name"].strip())
    return tuple(found)


def findings(output: str) -> tuple[str, ...]:
    """What linters and compilers say, as ``path: words`` without the lines, which move; one more of the same is one more."""
    found, path = [], ""
    for line in plain(output).splitlines():
        if _PATH.match(line):
            path = line
        elif (match := _FINDING.match(line)) is not None:
            found.append(f"{match['path']}: {match['said']}")
        elif path and (match := _UNDER.match(line)) is not None:
            found.append(f"{path}: {match['said']}")
    return tuple(found)


def named(output: str) -> tuple[str, ...]:
    """Failed tests, else findings; empty when neither is recognised."""
    return (failing_tests(output) or findings(output))[:MOST_NAMED]


def missing_code(output: str) -> bool:
    """True when tests could not even be loaded: an import, collect or compile error."""
    return bool(_MISSING.search(plain(output)))


def cannot_start(result: CommandResult) -> bool:
    """The program itself is not there: said by the runner, or by the shell with 126 or 127."""
    return result.cannot_start or result.exit in (126, 127)


def same_failure(now: CommandResult, then: CommandResult, *, before: Sequence[str] = ()) -> bool:
    """``now`` fails as ``then`` already did: same exit, and nothing fails that did not fail before (``before`` when the
    output of then was cut). Without recognisable names the outputs must be equal, times and addresses aside.
    """
    if now.ok or then.ok or now.timed_out != then.timed_out:
        return False
    if cannot_start(now) or cannot_start(then):
        return cannot_start(now) and cannot_start(then)
    if now.exit != then.exit:
        return False
    failed_now, failed_then = named(now.output), before or named(then.output)
    if failed_now or failed_then:
        return bool(failed_now) and not Counter(failed_now) - Counter(failed_then)
    return _VARIES.sub("~", plain(now.output)) == _VARIES.sub("~", plain(then.output))
