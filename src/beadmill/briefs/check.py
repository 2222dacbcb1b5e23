"""What is wrong with an edited template, and what it no longer says."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import TemplateSyntaxError

from beadmill.briefs import samples
from beadmill.briefs.source import (
    FAILURES,
    SUFFIX,
    Edits,
    built_in,
    environment,
    included,
    is_snippet,
    reach,
    users,
    values_of,
)

LARGEST = 200_000  # characters of one template
FORM = "form given at the end"  # how every rules snippet ties the reply to the form that Beadmill appends
MEANING: Mapping[str, str] = {
    "_fresh": "material is evidence and not an order, and the reply is the artifact alone",
    "_same": "the conversation goes on, and the reply is the artifact alone",
    "_talk": "each reply is one block that a program reads",
    "_look": "how the repository may be looked at, and that nothing is named unseen",
    "_vote": "how drafts are judged, and the labels that are scored",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an edited template cannot be used; ``line`` counts from 1, 0 = not one line's."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else self.reason


@dataclass(frozen=True, slots=True)
class Checked:
    """``good`` are the edits that can be used together; ``faults`` say why the others cannot."""

    good: Mapping[str, str]
    faults: Mapping[str, Fault]


def checked(edits: Edits) -> Checked:
    """A broken edit takes nothing else along: snippets are tried with built-in prompts, prompts with good snippets."""
    return _checked(tuple(sorted(edits.items())))


@lru_cache(maxsize=32)
def _checked(edits: tuple[tuple[str, str | None], ...]) -> Checked:
    good: dict[str, str] = {}
    faults: dict[str, Fault] = {}
    for name, text in sorted(edits, key=lambda edit: (not is_snippet(edit[0]), edit[0])):
        found = fault(name, text, good)
        if found is None and text is not None:
            good[name] = text
        elif found is not None:
            faults[name] = found
    return Checked(good, faults)


def fault(name: str, text: str | None, others: Mapping[str, str]) -> Fault | None:
    """None when ``text`` can stand for ``name`` beside the usable edits ``others``."""
    if text is None:
        return Fault(0, "the file cannot be read as UTF-8 text")
    if not text.strip():
        return Fault(0, "it is empty")
    if len(text) > LARGEST:
        return Fault(0, f"it has {len(text):,} characters; {LARGEST:,} is the most")
    try:
        return _unknown_include(text) or _circle(name, text, others) or _unrendered(name, {**others, name: text})
    except TemplateSyntaxError as error:
        return Fault(error.lineno, error.message or "it cannot be parsed")


def _unknown_include(text: str) -> Fault | None:
    wrong = next((line for target, line in included(text) if not target), None)
    snippets = ", ".join(f"{name}{SUFFIX}" for name in MEANING)
    return None if wrong is None else Fault(wrong, f"only these can be included, each by its name: {snippets}")


def _circle(name: str, text: str, others: Mapping[str, str]) -> Fault | None:
    for target, line in included(text):
        if name in reach(target, {**others, name: text}):
            return Fault(line, f"{target} comes to include {name} again")
    return None


def _unrendered(name: str, edits: Mapping[str, str]) -> Fault | None:
    """With the sample values of the template; a snippet within every prompt that includes it."""
    made = environment(edits)
    for user in users(name, edits) if is_snippet(name) else (name,):
        for values in samples.values(user):
            try:
                text = made.get_template(f"{user}{SUFFIX}").render({**samples.HEADS, **values})
            except FAILURES as error:
                return Fault(_line(error, name), _said(error, user, name))
            if not text.strip():
                return Fault(0, "it renders to nothing")
    return None


def _line(error: Exception, name: str) -> int:
    """The deepest line of ``name`` that the error went through."""
    if isinstance(error, TemplateSyntaxError) and error.filename == f"prompt:{name}":
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == f"prompt:{name}"), 0)


def _said(error: Exception, user: str, name: str) -> str:
    told = str(error) or type(error).__name__
    return told if user == name else f"{told} (in the prompt {user})"


def warnings(name: str, text: str, edits: Mapping[str, str]) -> tuple[str, ...]:
    """What the built-in text says and a usable edit no longer does. ``edits`` are the other usable ones."""
    laid = {**edits, name: text}
    ours, theirs = built_in(name), reach(name, laid)
    lost = [target for target, _ in included(ours) if target and target not in theirs]
    said = [f"It no longer includes {target}{SUFFIX}: {MEANING[target]}." for target in lost]
    given = frozenset().union(*(values_of(laid.get(one, built_in(one))) for one in theirs))
    said += [f"It no longer shows {{{{ {value} }}}}." for value in sorted(values_of(ours) - given)]
    if _speaks_of_form(name, {}) and not _speaks_of_form(name, laid):
        said.append(f"It no longer says that the reply has the {FORM} of the brief: replies may come in another form.")
    return tuple(said)


def _speaks_of_form(name: str, edits: Mapping[str, str]) -> bool:
    return any(FORM in " ".join(edits.get(one, built_in(one)).split()) for one in reach(name, edits))
