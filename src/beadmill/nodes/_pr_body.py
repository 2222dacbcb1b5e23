"""The pull request's text: what was asked, what was done, what proves it. Markdown; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from beadmill.artifacts.beads import Bead, Beads
from beadmill.artifacts.delivery import BeadEvidence, FinalTestReport, IntegrationReport, PullRequestText
from beadmill.artifacts.prd import Prd
from beadmill.artifacts.qa import QaRound
from beadmill.domain.money import said
from beadmill.engine.port import Work
from beadmill.proof.runs import how
from beadmill.store.journal.facts import Cost

RED = {
    "proved": "fail without the change",
    "absent": "cannot load without the change (weak)",
    "not_proved": "also pass without the change",
    "not_applicable": "not measured",
    "off": "not measured (off)",
}
MAX_BODY = 60_000  # characters; forges refuse longer ones


@dataclass(frozen=True, slots=True)
class Dossier:
    """Everything the body is made of. ``proofs`` is bead id → its landed evidence."""

    work: Work
    text: PullRequestText
    prd: Prd
    beads: Beads
    proofs: Mapping[str, BeadEvidence]
    report: FinalTestReport
    integration: IntegrationReport
    cost: Cost
    qa: tuple[QaRound, ...] = ()


def body(it: Dossier) -> str:
    sections = [
        it.text.summary.strip(),
        _prose("Why", it.text.why),
        _bullets("What changed", it.text.what_changed),
        _requirements(it),
        _checks(it),
        _tests(it),
        _bullets("Test changes to look at", _test_changes(it)),
        _bullets("Manual QA", _manual_qa(it.qa)),
        _bullets("Deviations from the plan", _deviations(it)),
        _review(it),
        _bullets("Follow-ups", it.text.follow_ups),
        _cost(it.cost),
        _reproduce(it),
    ]
    whole = "\n\n".join(section for section in sections if section)
    return whole if len(whole) <= MAX_BODY else whole[:MAX_BODY] + "\n\n… cut here; the rest is in Beadmill."


def fallback(work: Work, prd: Prd, beads: Beads) -> PullRequestText:
    """The text when no model can write one: facts only."""
    return PullRequestText(
        title=work.title[:200],
        summary=prd.product.problem_statement.strip() or work.title,
        what_changed=tuple(bead.title for bead in beads.beads if not bead.skipped),
    )


def _requirements(it: Dossier) -> str:
    stories = [(story.id, story.title) for epic in it.prd.epics for story in epic.user_stories]
    known = {name for name, _ in stories} | {epic.id for epic in it.prd.epics}
    rows = []
    for name, title in stories:
        epic = next(e.id for e in it.prd.epics if any(s.id == name for s in e.user_stories))
        rows += _rows(it, f"{name} {title}", [b for b in it.beads.beads if name in b.prd_refs or epic in b.prd_refs])
    rows += _rows(it, "beside the stories", [b for b in it.beads.beads if not known & set(b.prd_refs)], quiet=True)
    return _table("Requirements", ("Requirement", "Bead", "Commit", "Checks run by Beadmill"), rows)


def _rows(it: Dossier, requirement: str, beads: Sequence[Bead], *, quiet: bool = False) -> list[tuple[str, ...]]:
    if not beads:
        return [] if quiet else [(requirement, "none", "", "")]
    return [(requirement, bead.title, *_outcome(it, bead)) for bead in beads]


def _outcome(it: Dossier, bead: Bead) -> tuple[str, str]:
    if bead.skipped:
        return "", "skipped"
    proof = it.proofs.get(bead.id)
    if proof is None:
        return "", "not done"
    passed = sum(run.ok for run in proof.checks)
    said = f"{passed} of {len(proof.checks)} passed" if proof.checks else "no command"
    known = f", {len(proof.known_failures)} failed before already" if proof.known_failures else ""
    return f"`{proof.commit[:12]}`" if proof.commit else "no change", said + known


def _checks(it: Dossier) -> str:
    rows = [(f"`{run.command}`", "final test", how(run)) for run in it.report.runs]
    rows += [
        (
            f"`{run.command}`",
            "project tests",
            how(run) + (" (regression)" if run.command in it.report.regressions else ""),
        )
        for run in it.report.regression
    ]
    return _table("Checks of the whole change", ("Command", "What", "Result"), rows)


def _tests(it: Dossier) -> str:
    rows = [
        (bead, RED[proof.red_on_base.result], ", ".join(f"`{test}`" for test in proof.red_on_base.tests[:10]))
        for bead, proof in it.proofs.items()
        if proof.red_on_base.result != "off"
    ]
    return _table("New tests against the old code", ("Bead", "Its tests", "Named tests"), rows)


def _test_changes(it: Dossier) -> list[str]:
    return [f"`{one.path}`: {one.kind.replace('_', ' ')} ({one.detail})" for one in it.report.test_changes]


def _manual_qa(rounds: Sequence[QaRound]) -> list[str]:
    """The newest outcome, and what all rounds led to."""
    if not rounds:
        return []
    last = rounds[-1]
    told = [f"{last.line}, by {last.by}" + (f" ({' '.join(last.reason.split())})" if last.reason else "")]
    told += [f"waived: {one.title}: {' '.join(one.reason.split())}" for one in last.waivers]
    fixed = [f"`{name}`" for one in rounds for name in one.fix_beads]
    told += [f"mended after a failed check: {', '.join(fixed)}"] if fixed else []
    improved = [f"{made.ticket} ({made.title})" for one in rounds for made in one.improvements]
    return told + ([f"improvements for later: {', '.join(improved)}"] if improved else [])


def _deviations(it: Dossier) -> list[str]:
    return [
        f"{bead}: `{one.original}` was replaced by `{one.replacement}`: {one.because}"
        for bead, proof in it.proofs.items()
        for one in proof.deviations
        if one.accepted
    ]


def _review(it: Dossier) -> str:
    review = it.report.review
    if review is None:
        return ""
    listed = "\n".join(f"- {f.severity}: {f.text}" + (f" (`{f.path}`)" if f.path else "") for f in review.findings)
    said = f"{review.verdict.replace('_', ' ')} by {review.reviewer}: {review.summary}".strip()
    return "\n\n".join(text for text in ("## Independent review", said, listed) if text)


def _cost(cost: Cost) -> str:
    money = said(cost.usd, cost.unpriced) or "unpriced"
    return f"## Cost and time\n\n{cost.tokens:,} tokens, {money}, {cost.agent_seconds / 60:.1f} minutes of agent work."


def _reproduce(it: Dossier) -> str:
    commands = [str(run.command) for run in (*it.report.runs, *it.report.regression)]
    steps = [f"git fetch origin {it.integration.branch}", f"git checkout {it.integration.candidate_commit}", *commands]
    return "## How to reproduce\n\n```sh\n" + "\n".join(dict.fromkeys(steps)) + "\n```"


def _prose(title: str, text: str) -> str:
    return f"## {title}\n\n{text.strip()}" if text.strip() else ""


def _bullets(title: str, lines: Sequence[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines) if lines else ""


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [_row(head), "|" + " --- |" * len(head), *map(_row, rows)]
    return f"## {title}\n\n" + "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"
