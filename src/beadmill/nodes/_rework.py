"""Rework: what sends a run back to build becomes one more bead, so the build loop knows what to do."""

from __future__ import annotations

from collections.abc import Sequence

from beadmill.artifacts.beads import Bead, Beads
from beadmill.domain.command import CommandSpec
from beadmill.domain.values import VisitRef

MAX_FILES = 50


def with_rework(
    beads: Beads,
    origin: VisitRef,
    *,
    title: str,
    description: str,
    criteria: Sequence[str],
    commands: Sequence[CommandSpec],
    files: Sequence[str],
) -> Beads:
    """The plan with the bead ``rework-<node>-<n>`` at its end. The same visit always makes the same bead."""
    name = f"rework-{origin.node.replace('_', '-')}-{origin.n}"
    others = tuple(bead for bead in beads.beads if bead.id != name)
    bead = Bead(
        id=name,
        title=title,
        description=description,
        acceptance_criteria=tuple(criteria) or (title,),
        tests=("The project's tests pass, and new behaviour has tests of its own.",),
        test_commands=tuple(commands),
        test_command_reason=None if commands else "the project names no command that runs its tests",
        priority=max(bead.priority for bead in beads.beads) + 1 if beads.beads else 1,
        issue_type="rework",
        labels=("rework",),
        target_files=tuple(files[:MAX_FILES]) or (".",),
    )
    return beads.model_copy(update={"beads": (*others, bead)})
