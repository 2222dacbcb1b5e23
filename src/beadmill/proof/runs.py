"""Command results as evidence, and the words a failed check is told in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from beadmill.artifacts.setup import CommandRun
from beadmill.domain.ended import CommandResult
from beadmill.proof.failures import named

KEPT = 8_000  # characters of output a document keeps of one command; the ledger keeps the rest


def run_of(result: CommandResult, purpose: str) -> CommandRun:
    return CommandRun(
        command=result.command,
        exit=result.exit,
        seconds=round(result.seconds, 3),
        output=result.output[-KEPT:],
        timed_out=result.timed_out,
        cannot_start=result.cannot_start,
        purpose=purpose,
        failing=() if result.exit == 0 else named(result.output),
    )


def result_of(run: CommandRun) -> CommandResult:
    return CommandResult(
        command=run.command,
        exit=run.exit,
        seconds=run.seconds,
        output=run.output,
        timed_out=run.timed_out,
        cannot_start=run.cannot_start,
    )


def how(run: CommandRun | CommandResult) -> str:
    """``exit 1``, ``timed out``, ``could not start``: what a person reads behind the command."""
    if run.cannot_start:
        return "could not start"
    if run.timed_out:
        return "timed out"
    return "was killed" if run.exit is None else f"exit {run.exit}"


def told(runs: Iterable[CommandRun | CommandResult], *, tail: int = 1_500) -> str:
    """Failed commands with the end of their output, for a note to the next session."""
    parts = [f"$ {run.command}\n{how(run)}\n{run.output[-tail:].strip()}".strip() for run in runs if not run.ok]
    return "\n\n".join(parts)


def summary(runs: Sequence[CommandRun]) -> str:
    passed = sum(run.ok for run in runs)
    return f"{passed} of {len(runs)} commands passed"
