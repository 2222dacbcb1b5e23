"""VOTES: five categories 0-20 per draft (reference §2.4)."""

from __future__ import annotations

import re

from beadmill.artifacts.council import ScoreLine
from beadmill.artifacts.reading.ask import names, need
from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.replies import CategoryScores, Votes
from beadmill.artifacts.reading.shape import Context, Shape
from beadmill.artifacts.reading.tree import Tree, Unfit
from beadmill.artifacts.rubric import RUBRICS

_TOTAL = frozenset({"totalscore", "total", "sum", "overall", "score"})
_REASON = frozenset({"reason", "rationale", "why", "comment", "justification"})
_NESTED = frozenset({"categories", "scores", "rubric", "categoryscores"})
_OUT_OF = re.compile(r"^\s*(\d{1,3})(?:\.0+)?\s*(?:/\s*(20|100))?\s*$")


def _rubric(context: Context) -> tuple[str, ...]:
    """``rubric``, else the rubric of ``domain``, else none known."""
    domain = context.get("domain")
    given = names(context, "rubric")
    return given or (next((names_ for key, names_ in RUBRICS.items() if key == domain), ()))


def _prepare(tree: Tree, context: Context, notes: Notes) -> Tree:
    if not isinstance(tree, dict):
        return tree
    tree = _under_root(tree, context, notes)
    scores = next((value for key, value in tree.items() if squash(key) in ("draftscores", "scores", "votes")), None)
    if isinstance(scores, list):
        scores = _by_label(scores)
    if not isinstance(scores, dict):
        return tree
    out: dict[str, Tree] = {}
    for label, row in scores.items():
        if _label(label) in out:
            raise Unfit(f"{_label(label)}: scored twice")
        out[_label(label)] = _line(label, row, context, notes)
    return {"draft_scores": out}


def _under_root(tree: dict[str, Tree], context: Context, notes: Notes) -> dict[str, Tree]:
    """``Draft 1:`` at the top, without ``draft_scores``."""
    labels = {squash(label) for label in names(context, "labels") or ()}
    if tree and all(
        isinstance(v, dict) and (squash(k) in labels or re.match(r"draft\d+$", squash(k))) for k, v in tree.items()
    ):
        notes.fixed("labels at the top taken as", "draft_scores")
        return {"draft_scores": tree}
    return tree


def _by_label(rows: list[Tree]) -> Tree:
    """``[{label: Draft 1, …}]`` → ``{Draft 1: {…}}``; a label twice stays a list and fails."""
    out: dict[str, Tree] = {}
    for row in rows:
        key = (
            next((k for k in row if squash(k) in ("label", "draft", "id", "name")), None)
            if isinstance(row, dict)
            else None
        )
        if key is None or not isinstance(row[key], str) or row[key] in out:
            return rows
        out[row[key]] = {k: v for k, v in row.items() if k != key}
    return out


def _label(label: str) -> str:
    found = re.fullmatch(r"\s*draft[\s_#-]*(\d+)\s*", label, re.IGNORECASE)
    return f"Draft {int(found[1])}" if found and len(found[1]) < 6 else label


def _line(label: str, row: Tree, context: Context, notes: Notes) -> Tree:
    """Total, reason, and everything else as categories in the rubric's own spelling."""
    if not isinstance(row, dict):
        return row
    out: dict[str, Tree] = {"categories": {}}
    categories: dict[str, Tree] = {}
    for key, value in row.items():
        if squash(key) in _TOTAL:
            out["total_score"] = _points(value, label, notes, most="100")
        elif squash(key) in _REASON:
            out["reason"] = value
        else:
            inner = value if squash(key) in _NESTED and isinstance(value, dict) else {key: value}
            need([f"{label}: the category {name!r} is there twice" for name in inner if name in categories])
            categories |= inner
    rubric = _rubric(context)
    for key, value in categories.items():
        name = _category(key, rubric)
        if name in out["categories"]:
            raise Unfit(f"{label}: the category {name!r} is there twice")
        out["categories"][name] = _points(value, label, notes)
    if not isinstance(out.get("total_score"), str) or not str(out["total_score"]).strip().isdigit():
        out.pop("total_score", None)  # recomputed anyway
    return out


def _category(key: str, rubric: tuple[str, ...]) -> str:
    """Exact name, or the one name that begins with the written words."""
    same = [name for name in rubric if squash(name) == squash(key)]
    begins = [name for name in rubric if len(squash(key)) >= 5 and squash(name).startswith(squash(key))]
    return same[0] if same else begins[0] if len(begins) == 1 else key


def _points(value: Tree, label: str, notes: Notes, *, most: str = "20") -> Tree:
    """``18/20`` → ``18``; ``{score: 18}`` → ``18``; points of another maximum stay as they are and fail."""
    if isinstance(value, dict) and len(value) <= 2:
        inner = [v for k, v in value.items() if squash(k) in ("score", "points", "value")]
        value = inner[0] if len(inner) == 1 else value
    found = _OUT_OF.match(value) if isinstance(value, str) else None
    if not found or found[2] not in (None, most):
        return value
    if found[2]:
        notes.cleaned("points out of a maximum written as a number", f"{label}: {value}")
    return found[1]


def _check(votes: Votes, context: Context, notes: Notes) -> dict[str, ScoreLine]:
    """Labels exactly as shown, five categories each, 0-20, totals recomputed, reason cut to 200 characters."""
    labels, rubric = names(context, "labels"), _rubric(context)
    wrong: list[str] = []
    if labels is not None:
        wrong += [f"{label}: missing" for label in labels if label not in votes.draft_scores]
        wrong += [f"{label}: no such draft" for label in votes.draft_scores if label not in labels]
    for label, line in votes.draft_scores.items():
        wrong += _wrong(label, line, rubric)
    need(wrong)
    order = labels or tuple(votes.draft_scores)
    return {label: _score(label, votes.draft_scores[label], rubric, notes) for label in order}


def _wrong(label: str, line: CategoryScores, rubric: tuple[str, ...]) -> list[str]:
    given = tuple(line.categories)
    if rubric:
        out = [f"{label}: the category {name!r} is missing" for name in rubric if name not in given]
        out += [f"{label}: {name!r} is not a category" for name in given if name not in rubric]
    else:
        out = [] if len(given) == 5 else [f"{label}: five categories are wanted, not {len(given)}"]
    return out + [f"{label}: {name}: {n} is outside 0 to 20" for name, n in line.categories.items() if not 0 <= n <= 20]


def _score(label: str, line: CategoryScores, rubric: tuple[str, ...], notes: Notes) -> ScoreLine:
    points = tuple(line.categories[name] for name in (rubric or tuple(line.categories)))
    if line.total_score is not None and line.total_score != sum(points):
        notes.cleaned("total recomputed", f"{label}: {line.total_score} → {sum(points)}")
    if len(line.reason) > 200:
        notes.cleaned("reason cut to 200 characters", label)
    return ScoreLine(categories=points, total_score=sum(points), reason=line.reason[:200])


VOTES: Shape[dict[str, ScoreLine]] = Shape(
    "votes",
    Votes,
    prepare=_prepare,
    check=_check,
    rules=(
        "One entry per draft, with the labels exactly as shown.",
        "Each of the five categories is a whole number from 0 to 20; total_score is their sum.",
        "reason: one plain line, at most 200 characters, without a colon.",
    ),
    context={
        "labels": "sequence of str: exactly these labels, in the order the scores come back",
        "rubric": "sequence of five str: the category names",
        "domain": "interview | prd | beads: the rubric when none is given",
    },
    example="""
draft_scores:
  Draft 1:
    Coverage of requirements: 17
    Correctness / feasibility: 15
    Testability: 16
    Minimal complexity / good decomposition: 14
    Risks / edge cases addressed: 12
    total_score: 74
    reason: Covers every flow, weak on failures.
  Draft 2:
    Coverage of requirements: 12
    Correctness / feasibility: 16
    Testability: 13
    Minimal complexity / good decomposition: 18
    Risks / edge cases addressed: 10
    total_score: 69
    reason: Simpler, but leaves out the import.
""",
)
