"""What the results of a bead's commands mean: known failures, deviations, what still fails. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from beadmill.artifacts.beads import ReplacedCommand
from beadmill.artifacts.delivery import Deviation
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import CommandResult
from beadmill.proof.failures import cannot_start, same_failure

MISSING = "the original cannot start"
SAME = "the original fails the same way at the start commit"


@dataclass(frozen=True, slots=True)
class Sorted:
    """``failing`` and ``known`` hold positions of the bead's commands; ``replacements`` maps position to command."""

    failing: tuple[int, ...]
    known: tuple[int, ...]
    replacements: Mapping[int, CommandSpec]
    deviations: tuple[Deviation, ...]


def sort(
    specs: Sequence[CommandSpec],
    results: Sequence[CommandResult],
    at_start: Mapping[int, CommandResult],
    proposed: Sequence[ReplacedCommand],
) -> Sorted:
    """A replacement counts only if the original cannot start, or fails the same way at the start commit."""
    by_original = _first(proposed)
    failing, known, replacements, deviations = [], [], {}, []
    for n, (spec, result) in enumerate(zip(specs, results, strict=False)):
        proposal = by_original.pop(str(spec), None)
        because = _because(result, at_start.get(n))
        if proposal is not None:
            deviations.append(_deviation(proposal, because, accepted=bool(because)))
        if result.ok:
            continue
        if proposal is not None and because:
            replacements[n] = proposal.replacement
        elif because == SAME and not cannot_start(result):
            known.append(n)
        else:
            failing.append(n)
    failing.extend(range(len(results), len(specs)))  # a batch that was cut short proves nothing about the rest
    deviations += [_deviation(p, "it is not a command of this bead", accepted=False) for p in by_original.values()]
    return Sorted(tuple(failing), tuple(known), replacements, tuple(deviations))


def _because(result: CommandResult, start: CommandResult | None) -> str:
    if cannot_start(result):
        return MISSING
    return SAME if start is not None and same_failure(result, start) else ""


def _first(proposed: Sequence[ReplacedCommand]) -> dict[str, ReplacedCommand]:
    found: dict[str, ReplacedCommand] = {}
    for proposal in proposed:
        found.setdefault(str(proposal.original), proposal)
    return found


def _deviation(proposal: ReplacedCommand, because: str, *, accepted: bool) -> Deviation:
    return Deviation(
        original=str(proposal.original),
        replacement=str(proposal.replacement),
        reason=proposal.reason,
        accepted=accepted,
        because=because or "the original can run and does not fail this way at the start commit",
    )
