"""The regression gate: project commands that did pass before the change and do not pass now. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from beadmill.artifacts.setup import CommandRun
from beadmill.proof.failures import same_failure
from beadmill.proof.runs import result_of


def regressions(baseline: Sequence[CommandRun], now: Sequence[CommandRun]) -> tuple[str, ...]:
    """Commands that fail now and passed, or failed differently, in the baseline; a command without one must pass."""
    before = {run.command: run for run in baseline}
    return tuple(run.command for run in now if not run.ok and not _known(run, before.get(run.command)))


def _known(run: CommandRun, before: CommandRun | None) -> bool:
    return before is not None and same_failure(result_of(run), result_of(before))
