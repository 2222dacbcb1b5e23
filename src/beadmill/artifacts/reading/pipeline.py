"""read: clean → echo → candidates → parse → local repairs → unwrap → aliases → normalise → validate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from beadmill.artifacts.council import Intervention
from beadmill.artifacts.reading.candidates import Candidate, find, squash, tags
from beadmill.artifacts.reading.clean import clean, echoes, tidy
from beadmill.artifacts.reading.fit import Fit
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.parse import parse
from beadmill.artifacts.reading.shape import Context, Failure, Reading, Shape
from beadmill.artifacts.reading.tree import BadText, Tree, Unfit, Work, from_json, text_of
from beadmill.artifacts.reading.vocabulary import vocabulary

T = TypeVar("T")
_WRAPPERS = frozenset(
    {"output", "result", "text", "message", "data", "document", "artifact", "response", "reply", "answer", "content"}
)


@dataclass(frozen=True, slots=True)
class _Try:
    """What became of one candidate. ``step`` 0 = no tree, 1 = a tree of another document, 2 = ours and wrong, 3 = fine."""

    step: int
    value: Any = None
    failure: Failure = ""
    error: str = ""
    notes: tuple[Intervention, ...] = ()


def read(
    shape: Shape[T],
    text: str,
    *,
    data: object = None,
    context: Mapping[str, object] | None = None,
    work: Work | None = None,
) -> Reading[T]:
    """The document in a reply, or why there is none. ``data`` is the native structured output, tried first; ``work``
    is what reading may cost and, afterwards, what it did cost.

    Context keys every shape knows: ``truncated`` (bool: the agent said that the reply hit its length limit) and
    ``scaffolding`` (sequence of str: more lines of the prompt whose repetition is an echo). ``shape.context`` names
    the others. Never raises on any input; the same input gives the same reading.
    """
    ctx: Context = context or {}
    if data is not None:
        native = _native(shape, data, ctx)
        if native.step == 3 or not text.strip():
            return _reading(native)
    notes = Notes()
    cleaned = clean(text, notes)
    if not cleaned.strip():
        return Reading(None, "empty", "the reply is empty", notes.all())
    if shape.form != "text" and ctx.get("truncated") and not shape.last_may_go:
        return Reading(None, "truncated", "the reply was cut off at its length limit", notes.all())
    scaffolding = ctx.get("scaffolding")
    more = tuple(map(str, scaffolding)) if isinstance(scaffolding, (list, tuple)) else ()
    repeated = echoes(cleaned, more)
    if len(repeated) >= 2:
        return Reading(None, "echo", f"the reply repeats the prompt ({'; '.join(repeated)})", notes.all())
    if shape.form == "text":
        return _reading(_accept(shape, {"text": cleaned.strip()}, ctx, notes))
    work = work or Work()
    attempt = _search(shape, cleaned, ctx, notes, work)
    inner = None if attempt.step == 3 else _envelope(shape, cleaned)
    return _reading(attempt) if inner is None else _inside(read(shape, inner, context=ctx, work=work))


def _envelope(shape: Shape[Any], text: str) -> str | None:
    """The text in ``{"result": "…"}``: how a CLI hands over what a model said."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        tree = from_json(text.strip()).tree
    except BadText:
        return None
    if _ours(shape, tree):
        return None
    found = [v for k, v in tree.items() if squash(k) in _WRAPPERS and isinstance(v, str) and v.strip()]
    return found[0] if len(found) == 1 else None


def _inside(reading: Reading[T]) -> Reading[T]:
    note = Intervention(category="parser_fix", stage="parse", title="JSON around the reply removed")
    return replace(reading, interventions=(note, *reading.interventions))


def _reading(attempt: _Try) -> Reading[Any]:
    return Reading(attempt.value, attempt.failure, attempt.error, attempt.notes)


def _native(shape: Shape[Any], data: object, ctx: Context) -> _Try:
    try:
        tree = text_of(data)
    except BadText as error:
        return _Try(0, failure="parse", error=str(error))
    return _accept(shape, tree, ctx, Notes())


def _search(shape: Shape[Any], text: str, ctx: Context, notes: Notes, work: Work) -> _Try:
    """First every candidate as it is, then every candidate with repairs; the furthest failure is the one told."""
    found = find(text, tag=shape.tag, keys=_top_keys(shape))
    if shape.marker:
        found = tuple(one for one in found if _is_marker(one, text))
    ends = shape.finish is not None and _ends(shape, text)
    best = _Try(0, failure="parse", error="no document found in the reply", notes=notes.all())
    readable: set[int] = set()  # candidates that parse: repairs have nothing to do there
    for repair in (False, True):
        for at, one in enumerate(found):
            if at in readable or (repair and shape.marker and not _may_mend(one)):
                continue
            attempt = _candidate(shape, one, ctx, Notes(*notes.all()), work, repair=repair)
            if attempt.step > 0:
                readable.add(at)
            if attempt.step == 3:
                return _only_one(shape, attempt, one, others=found[at + 1 :], text=text, ctx=ctx, work=work)
            if attempt.step > best.step or best.error.startswith("no document"):
                best = attempt
        if ends and shape.finish is not None:
            return _Try(3, shape.finish(), notes=notes.all())
    if shape.marker and not any(one.origin == "tag" for one in found) and best.step < 2 and best.failure != "truncated":
        return _Try(best.step, failure="parse", error=f"there is no <{shape.tag}> in the reply", notes=best.notes)
    return best


def _is_marker(one: Candidate, text: str) -> bool:
    """Between its tags, or the whole reply but for its fence."""
    outside = text[: one.start] + text[one.end :]
    return one.origin in ("tag", "raw") or (one.origin == "fence" and not outside.strip())


def _may_mend(one: Candidate) -> bool:
    """Lines must not be taken away until a marker is left: without its tags only JSON is repaired."""
    return one.origin == "tag" or one.text.startswith("{")


def _ends(shape: Shape[Any], text: str) -> bool:
    """The end tag at the start of a line, and no other tag beside it: a sentence about it ends nothing."""
    said = re.search(rf"^[ \t]*<\s*{re.escape(shape.end_tag)}\s*/?>", text, re.MULTILINE | re.IGNORECASE)
    return said is not None and not any(True for _ in tags(text, shape.tag))


def _candidate(shape: Shape[Any], one: Candidate, ctx: Context, notes: Notes, work: Work, *, repair: bool) -> _Try:
    work.tries += 1
    if one.title:
        notes.fixed(one.title)
    try:
        words = vocabulary(shape)
        tree = parse(one.text, form=shape.form, work=work, notes=notes, words=words, repair=repair)
    except BadText as bad:
        error = bad.below(one.line)
        cut = error.cut and (one.open_ended or one.origin in ("raw", "json", "key"))
        failure: Failure = "truncated" if cut else "parse"
        return _Try(0, failure=failure, error=str(error), notes=notes.all())
    if shape.last_may_go and (ctx.get("truncated") or one.open_ended):
        tree = _without_last(shape, tree, notes)
    attempt = _accept(shape, tree, ctx, notes)
    if one.open_ended and attempt.step == 2 and "Field required" in attempt.error:
        return replace(attempt, failure="truncated")  # what is missing would have come before the end that is missing
    return attempt


def _only_one(
    shape: Shape[Any],
    won: _Try,
    winner: Candidate,
    *,
    others: tuple[Candidate, ...],
    text: str,
    ctx: Context,
    work: Work,
) -> _Try:
    """Two blocks that both satisfy the schema and differ are an ambiguity: the model must say which it means."""
    if winner.origin not in ("fence", "tag"):
        return won
    apart = [o for o in others if o.origin == winner.origin and (o.start >= winner.end or o.end <= winner.start)]
    rivals = [_candidate(shape, other, ctx, Notes(), work, repair=False) for other in apart]
    if winner.origin == "fence":
        rivals += [_candidate(shape, o, ctx, Notes(), work, repair=True) for o in _around(shape, winner, text)]
    if any(rival.step == 3 and rival.value != won.value for rival in rivals):
        error = "the reply holds two different documents; send exactly one"
        return _Try(2, failure="validation", error=error, notes=won.notes)
    return won


def _around(shape: Shape[Any], block: Candidate, text: str) -> list[Candidate]:
    """What may be a document without a fence before or after a fenced one."""
    parts = (text[: block.start], text[block.end :])
    found = [one for part in parts for one in find(part, keys=_top_keys(shape)) if one.origin in ("raw", "key")]
    return [one for one in found if squash(one.text.partition(":")[0]) in _top_keys(shape)]


def _top_keys(shape: Shape[Any]) -> frozenset[str]:
    return vocabulary(shape).top


def _without_last(shape: Shape[Any], tree: Tree, notes: Notes) -> Tree:
    """A cut reply: the last entry of the main list may be half of one, so it goes."""
    rows = tree.get(shape.root) if isinstance(tree, dict) else tree
    if not isinstance(rows, list) or len(rows) < 2:
        return tree
    notes.dropped("the last entry left out: the reply was cut", f"{shape.root}.{len(rows) - 1}")
    return tree | {shape.root: rows[:-1]} if isinstance(tree, dict) else rows[:-1]


def _accept(shape: Shape[Any], tree: Tree, ctx: Context, notes: Notes) -> _Try:
    """Unwrap, lay along the model, normalise, validate, check."""
    try:
        tree = shape.prepare(_unwrap(shape, tidy(tree, notes), notes), ctx, notes)
        if not isinstance(tree, dict) or not _ours(shape, tree):
            wanted = ", ".join([name for name in shape.model.model_fields if name not in shape.owned][:6])
            error = f"no document with these keys in the reply: {wanted} …"
            return _Try(1, failure="validation" if isinstance(tree, dict) else "parse", error=error, notes=notes.all())
        fitted = Fit(shape.aliases, notes, vocabulary(shape).fields).model(shape.model, tree)
        fitted = shape.normalise(_without_owned(shape, fitted, notes), ctx, notes)
        value = shape.check(shape.model.model_validate(fitted), ctx, notes)
    except ValidationError as error:
        return _Try(2, failure="validation", error=told(error), notes=notes.all())
    except Unfit as error:
        return _Try(2, failure="truncated" if error.cut else "validation", error=str(error), notes=notes.all())
    return _Try(3, value, notes=notes.all())


def _ours(shape: Shape[Any], tree: dict[str, Tree]) -> bool:
    keys = _top_keys(shape) - {squash(name) for name in shape.owned}
    return any(squash(key) in keys for key in tree)


def _without_owned(shape: Shape[Any], tree: dict[str, Tree], notes: Notes) -> dict[str, Tree]:
    theirs = sorted(shape.owned & tree.keys())
    if theirs:
        notes.cleaned("keys that Beadmill fills itself ignored", ", ".join(theirs))
    return {key: value for key, value in tree.items() if key not in shape.owned}


def _unwrap(shape: Shape[Any], tree: Tree, notes: Notes) -> Tree:
    """``{result: {…}}`` → ``{…}``; a bare list → the list it stands for."""
    names = _WRAPPERS | {squash(shape.name), squash(shape.tag), squash(shape.model.__name__)}
    for _ in range(3):
        if not isinstance(tree, dict) or _ours(shape, tree):
            break
        inner = [(k, v) for k, v in tree.items() if squash(k) in names and isinstance(v, (dict, list))]
        if len(inner) != 1:
            break
        notes.fixed("container removed", inner[0][0])
        tree = inner[0][1]
    if isinstance(tree, list) and len(tree) == 1 and isinstance(tree[0], dict) and _is_root(shape, tree[0]):
        notes.fixed("list of one document removed")
        tree = tree[0]
    if isinstance(tree, list) and shape.root:
        if shape.form != "jsonl":
            notes.fixed("bare list taken as", shape.root)
        return {shape.root: tree}
    return tree


def _is_root(shape: Shape[Any], item: dict[str, Tree]) -> bool:
    """A list of one that holds the whole document: ``[{beads: […]}]``."""
    if not shape.root:
        return _ours(shape, item)
    return any(squash(k) == squash(shape.root) and isinstance(v, list) for k, v in item.items())


def told(error: ValidationError) -> str:
    """Where and what, one line per problem, twelve at most."""
    lines = []
    for one in error.errors(include_url=False, include_context=False, include_input=False)[:12]:
        where = ".".join(str(part) for part in one["loc"]) or "document"
        lines.append(f"{where}: {one['msg'].removeprefix('Value error, ')}")
    more = error.error_count() - len(lines)
    return "\n".join(lines + ([f"… and {more} more"] if more > 0 else []))
