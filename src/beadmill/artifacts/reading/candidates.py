"""Where in a reply the document may be: tag, whole text, fences, JSON in prose, first known key, glued key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

Origin = Literal["tag", "raw", "fence", "json", "key", "glued", "native"]
MOST = 20  # candidates per reply

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+.-]*)[^\n`]*$", re.MULTILINE)
_SPEAKER = re.compile(
    r"\A(?:\s*(?:\[(?:assistant|tool|model|system|output)\]|(?:assistant|model)\s*:))+\s*", re.IGNORECASE
)
_KEY_LINE = re.compile(r"^(?:[\"']?)([A-Za-z][\w \-]{0,60}?)[\"']?[ \t]*:(?=[ \t\n]|$)", re.MULTILINE)
_GLUED = re.compile(r"(?<=[ \t.:!>`*])([A-Za-z][\w\-]{2,60})[ \t]*:[ \t]*(?=\n|\Z)")


@dataclass(frozen=True, slots=True)
class Candidate:
    """``start``/``end`` in the cleaned reply; ``open_ended`` = its tag or fence is never closed."""

    text: str
    origin: Origin
    start: int
    end: int
    title: str = ""  # the intervention it stands for, "" when the reply is just the document
    open_ended: bool = False


def squash(key: str) -> str:
    """How keys are compared: lower case, letters and digits only."""
    return "".join(c for c in key.lower() if c.isalnum())


def find(text: str, *, tag: str = "", keys: frozenset[str] = frozenset()) -> tuple[Candidate, ...]:
    """Candidates, most precise first, none twice. ``keys`` are squashed top-level keys of the document."""
    seen: set[str] = set()
    out: list[Candidate] = []
    for one in islice(_all(text, tag, keys), 10 * MOST):
        body = one.text.strip("\n").rstrip()
        if body.strip() and body not in seen and len(out) < MOST:
            seen.add(body)
            out.append(Candidate(body, one.origin, one.start, one.end, one.title, one.open_ended))
    return tuple(out)


def _all(text: str, tag: str, keys: frozenset[str]) -> Iterator[Candidate]:
    tagged = list(tags(text, tag)) if tag else []
    for one in tagged:
        yield from _inside(one)
    yield Candidate(text, "raw", 0, len(text))
    spoken = _SPEAKER.match(text)
    if spoken and spoken.end():
        yield Candidate(text[spoken.end() :], "raw", spoken.end(), len(text), "speaker label removed")
    yield from _fences(text)
    yield from _json_in_prose(text)
    yield from _from_key(text, keys)


def _inside(one: Candidate) -> Iterator[Candidate]:
    yield one
    for fence in _fences(one.text):
        yield Candidate(fence.text, "tag", one.start, one.end, fence.title, one.open_ended or fence.open_ended)


def tags(text: str, tag: str) -> Iterator[Candidate]:
    """Content of every ``<TAG>…</TAG>``; of the last one also when it is never closed."""
    opener = re.compile(rf"<\s*{re.escape(tag)}\s*>", re.IGNORECASE)
    closer = re.compile(rf"<\s*/\s*{re.escape(tag)}\s*>", re.IGNORECASE)
    found = list(opener.finditer(text))[-MOST:]
    for at, match in enumerate(found):
        limit = found[at + 1].start() if at + 1 < len(found) else len(text)
        close = closer.search(text, match.end(), limit)
        if close:
            yield Candidate(text[match.end() : close.start()], "tag", match.start(), close.end())
        elif at + 1 == len(found):
            title = f"<{tag}> is not closed"
            yield Candidate(text[match.end() :], "tag", match.start(), len(text), title, open_ended=True)


def _fences(text: str) -> Iterator[Candidate]:
    """Blocks fenced by ``` or ~~~, any label, any case. A fence inside a longer or other fence is content."""
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match
        elif match[1].startswith(opened[1]) and not match[2]:
            yield Candidate(
                text[opened.end() : match.start()], "fence", opened.start(), match.end(), "code fence removed"
            )
            opened = None
    if opened is not None:
        title = "code fence is not closed"
        yield Candidate(text[opened.end() :], "fence", opened.start(), len(text), title, open_ended=True)


_JSON_START = (re.compile(r"^[ \t]*([\[{])(?=\s*[\"'{\[}\]])", re.MULTILINE), re.compile(r"[ \t:]({)(?=\s*\")"))


def _json_in_prose(text: str) -> Iterator[Candidate]:
    """From the first line that starts with a bracket, or the first ``{"`` in a line, to the last bracket of that kind."""
    match = _JSON_START[0].search(text) or _JSON_START[1].search(text)
    if match is None:
        return
    start = match.start(1)
    end = text.rfind("]" if match[1] == "[" else "}") + 1
    if end > start and (start > 0 or end < len(text)):
        yield Candidate(text[start:end], "json", start, end, "text around the JSON removed")


def _from_key(text: str, keys: frozenset[str]) -> Iterator[Candidate]:
    for match in _KEY_LINE.finditer(text):
        if squash(match[1]) in keys:
            if match.start() > 0:
                yield Candidate(
                    text[match.start() :], "key", match.start(), len(text), "text before the document removed"
                )
            return
    for match in _GLUED.finditer(text):
        if squash(match[1]) in keys:
            title = "text before the first key of the same line removed"
            yield Candidate(text[match.start(1) :], "glued", match.start(1), len(text), title)
            return
