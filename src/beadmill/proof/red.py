"""Red on base: do the new tests fail without the change? Choice of commands and the verdict; pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from beadmill.artifacts.delivery import RedOnBase
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import CommandResult
from beadmill.proof.failures import cannot_start, failing_tests, missing_code
from beadmill.proof.runs import how, run_of


def naming(specs: Sequence[CommandSpec], tests: Sequence[str]) -> tuple[CommandSpec, ...]:
    """The commands that name a test file: its path, its dotted module, or the file as seen from their ``cwd``."""
    return tuple(spec for spec in specs if any(_names(spec, test) for test in tests))


def _names(spec: CommandSpec, test: str) -> bool:
    path = PurePosixPath(test)
    words = " ".join((*spec.args, spec.script))
    spellings = {test, ".".join(path.with_suffix("").parts)}
    if path.is_relative_to(spec.cwd):
        inside = path.relative_to(spec.cwd)
        spellings |= {str(inside), ".".join(inside.with_suffix("").parts)}
    return any(spelling in words for spelling in spellings)


def verdict(results: Sequence[CommandResult]) -> RedOnBase:
    """``proved``: named tests fail; ``absent``: they cannot even load (weak); ``not_proved``: all pass."""
    runs = tuple(run_of(result, "red_on_base") for result in results)
    named = tuple(dict.fromkeys(name for r in results if not r.ok for name in failing_tests(r.output)))
    failed = [r for r in results if not r.ok]
    if not failed:
        return RedOnBase(result="not_proved", detail="the tests also pass without the change", runs=runs)
    if named:
        return RedOnBase(result="proved", tests=named, detail=f"{len(named)} fail without the change", runs=runs)
    if any(cannot_start(r) for r in failed):
        return RedOnBase(result="not_applicable", detail="the command cannot start without the change", runs=runs)
    why = (
        "the tests cannot load"
        if any(missing_code(r.output) for r in failed)
        else f"no test is named ({how(failed[0])})"
    )
    return RedOnBase(result="absent", detail=f"without the change {why}", runs=runs)
