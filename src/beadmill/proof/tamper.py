"""The tamper guard: which tests a change weakened, read from its unified diff. Pure; it lists, policies decide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from re import Pattern

from beadmill.artifacts.delivery import TestChange
from beadmill.proof.frameworks import LOOSER, STRICTER, Framework, framework_of, is_test, is_test_config

_HEADER = re.compile(r'^diff --git "?a/(?P<old>.+?)"? "?b/(?P<new>.+?)"?$')


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One file of a unified diff. ``old`` is "" for a new file, ``new`` is "" for a deleted one."""

    old: str
    new: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    context: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return self.new or self.old

    @property
    def text(self) -> str:
        return "\n".join((*self.context, *self.removed, *self.added))


def split(diff: str) -> tuple[FileDiff, ...]:
    """The files of ``git diff`` output, in order. Binary files have no lines."""
    chunks: list[list[str]] = []
    for line in diff.splitlines():
        if line.startswith("diff --git "):
            chunks.append([])
        if chunks:
            chunks[-1].append(line)
    return tuple(_file(chunk) for chunk in chunks)


def _file(lines: Sequence[str]) -> FileDiff:
    found = _HEADER.match(lines[0])
    old, new = (found["old"], found["new"]) if found else ("", "")
    head = [line for line in lines[1:7] if not line.startswith("@@")]
    start = next((n for n, line in enumerate(lines) if line.startswith("@@")), len(lines))
    body = [line for line in lines[start:] if not line.startswith("@@")]
    return FileDiff(
        old="" if any(line.startswith("new file") for line in head) else old,
        new="" if any(line.startswith("deleted file") for line in head) else new,
        removed=tuple(line[1:] for line in body if line.startswith("-")),
        added=tuple(line[1:] for line in body if line.startswith("+")),
        context=tuple(line[1:] for line in body if line.startswith(" ")),
    )


def findings(diff: str) -> tuple[TestChange, ...]:
    """Deleted or renamed tests, added skip or only, fewer assertions, loosened configuration, in file order."""
    return tuple(finding for file in split(diff) for finding in _of_file(file))


def _of_file(file: FileDiff) -> Iterator[TestChange]:
    framework = framework_of(file.path, file.text)
    if file.old and is_test(file.old):
        yield from _of_existing_test(file, framework)
    if file.new and is_test(file.new):
        yield from _added(file, framework)
    if file.old and is_test_config(file.path):
        yield from _loosened(file)


def _of_existing_test(file: FileDiff, framework: Framework) -> Iterator[TestChange]:
    if not file.new:
        yield TestChange(path=file.old, kind="deleted", detail="the test file is gone", framework=framework.name)
        return
    if file.new != file.old:
        yield TestChange(path=file.old, kind="renamed", detail=f"now {file.new}", framework=framework.name)
    lost = _count(framework.assertion, file.removed) - _count(framework.assertion, file.added)
    if lost > 0:
        noun = "assertion" if lost == 1 else "assertions"
        yield TestChange(
            path=file.new, kind="fewer_assertions", detail=f"{lost} {noun} fewer", framework=framework.name
        )


def _added(file: FileDiff, framework: Framework) -> Iterator[TestChange]:
    skips = _new(framework.skip, file)
    if skips:
        yield TestChange(path=file.new, kind="skipped", detail=skips, framework=framework.name)
    only = _new(framework.only, file)
    if only:
        yield TestChange(path=file.new, kind="only", detail=only, framework=framework.name)


def _loosened(file: FileDiff) -> Iterator[TestChange]:
    looser = _new(LOOSER, file)
    dropped = _gone(STRICTER, file)
    detail = looser or dropped
    if detail:
        yield TestChange(path=file.path, kind="loosened_config", detail=detail)


def _count(pattern: Pattern[str], lines: Sequence[str]) -> int:
    return sum(len(pattern.findall(line)) for line in lines)


def _new(pattern: Pattern[str], file: FileDiff) -> str:
    """The first added line that matches, when more match than were removed; else ""."""
    if _count(pattern, file.added) <= _count(pattern, file.removed):
        return ""
    return next(line.strip()[:200] for line in file.added if pattern.search(line))


def _gone(pattern: Pattern[str], file: FileDiff) -> str:
    if _count(pattern, file.removed) <= _count(pattern, file.added):
        return ""
    return "removed: " + next(line.strip()[:190] for line in file.removed if pattern.search(line))
