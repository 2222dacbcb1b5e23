"""Documents as the parts of a brief, and as the environment of a command."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from beadmill.artifacts.base import Document
from beadmill.artifacts.beads import Bead
from beadmill.artifacts.lean import lean
from beadmill.artifacts.setup import SetupProfile
from beadmill.briefs import PartText
from beadmill.engine.port import Work

MAX_DIFF = 30_000  # characters of a patch in a brief (reference §9.5)


def ticket_part(work: Work) -> PartText:
    lines = [f"key: {work.key}", f"title: {work.title}", "", work.description.strip()]
    if work.acceptance.strip():
        lines += ["", "acceptance:", work.acceptance.strip()]
    return PartText("ticket_details", "\n".join(lines).strip() + "\n")


def part(name: str, document: Document) -> PartText:
    return PartText(name, pretty(document))


def pretty(document: Document) -> str:
    return json.dumps(lean(document), indent=1, ensure_ascii=False)


def bead_part(bead: Bead) -> PartText:
    meaning = lean(bead, exclude=frozenset({"created_at", "labels", "skipped", "qa_origin"}))
    return PartText("bead_data", json.dumps(meaning, indent=1, ensure_ascii=False))


def notes_part(name: str, notes: Sequence[str], told: Sequence[str] = ()) -> PartText:
    """``told`` comes from people, who find their words as they wrote them."""
    lines = [f"### Note {n}\n{note.strip()}" for n, note in enumerate(notes, 1)]
    return PartText(
        name, "\n\n".join([*lines, *(f"### From the person who had it tried again\n{one}" for one in told)])
    )


def diff_part(diff: str, *, most: int = MAX_DIFF) -> PartText:
    return PartText("diff", diff if len(diff) < most else diff[:most] + "\n… the rest of the patch is cut off")


def profile_part(profile: SetupProfile) -> PartText:
    """What a session may rely on, without the output of what was run."""
    shown = profile.model_dump(mode="json", include={"summary", "path_prepend", "variables", "inputs_copied", "notes"})
    shown["bootstrap"] = [run.command for run in profile.bootstrap]
    return PartText("execution_setup_profile", json.dumps(shown, indent=1, ensure_ascii=False))


def environment(profile: SetupProfile) -> Mapping[str, str]:
    """What the prepared environment adds to the allow-listed one."""
    env = dict(profile.variables)
    if profile.path_prepend:
        env["PATH"] = os.pathsep.join([*profile.path_prepend, os.environ.get("PATH", os.defpath)])
    return env
