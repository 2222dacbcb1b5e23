"""Where in a reply the document may be: tag, whole text, fences, JSON in prose, first known key, glued key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

Origin = Literal["tag", "raw", "fence", "json", "key", "glued", "native"]
MOST = 20  # candidates per reply
MOST_KEYS = 50_000  # lines that look like a key and are looked at

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
    begins: int = 0  # where ``text`` itself begins in the cleaned reply
    line: int = 0  # the same as a line, from 0


def squash(key: str) -> str:
    """How keys are compared: lower case, letters and digits only."""
    return "".join(c for c in key.lower() if c.isalnum())


def find(text: str, *, tag: str = "", keys: frozenset[str] = frozenset()) -> tuple[Candidate, ...]:
    """Candidates, most precise first, none twice. ``keys`` are squashed top-level keys of the document."""
    seen: set[str] = set()
    out: list[Candidate] = []
    for one in islice(_all(text, tag, keys), 10 * MOST):
        begins = one.begins + len(one.text) - len(one.text.lstrip("\n"))
        body = one.text.strip("\n").rstrip()
        if body.strip() and body not in seen and len(out) < MOST:
            seen.add(body)
            out.append(replace(one, text=body, begins=begins, line=text.count("\n", 0, begins)))
    return tuple(out)


def _all(text: str, tag: str, keys: frozenset[str]) -> Iterator[Candidate]:
    tagged = list(tags(text, tag)) if tag else []
    for one in tagged:
        yield from _inside(one)
    yield Candidate(text, "raw", 0, len(text))
    spoken = _SPEAKER.match(text)
    if spoken and spoken.end():
        begins = spoken.end()
        yield Candidate(text[begins:], "raw", begins, len(text), "speaker label removed", begins=begins)
    yield from _fences(text)
    yield from _json_in_prose(text)
    yield from _from_key(text, keys)


def _inside(one: Candidate) -> Iterator[Candidate]:
    yield one
    for fence in _fences(one.text):
        begins = one.begins + fence.begins
        yield replace(
            one, text=fence.text, title=fence.title, open_ended=one.open_ended or fence.open_ended, begins=begins
        )


def tags(text: str, tag: str) -> Iterator[Candidate]:
    """Content of every ``<TAG>…</TAG>``; of the last one also when it is never closed."""
    opener = re.compile(rf"<\s*{re.escape(tag)}\s*>", re.IGNORECASE)
    closer = re.compile(rf"<\s*/\s*{re.escape(tag)}\s*>", re.IGNORECASE)
    found = list(opener.finditer(text))[-MOST:]
    for at, match in enumerate(found):
        limit = found[at + 1].start() if at + 1 < len(found) else len(text)
        close = closer.search(text, match.end(), limit)
        if close:
            content = text[match.end() : close.start()]
            yield Candidate(content, "tag", match.start(), close.end(), begins=match.end())
        elif at + 1 == len(found):
            title = f"<{tag}> is not closed"
            content = text[match.end() :]
            yield Candidate(content, "tag", match.start(), len(text), title, open_ended=True, begins=match.end())


def _fences(text: str) -> Iterator[Candidate]:
    """Blocks fenced by ``` or ~~~, any label, any case. A fence inside a longer or other fence is content."""
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match
        elif match[1].startswith(opened[1]) and not match[2]:
            content = text[opened.end() : match.start()]
            yield Candidate(content, "fence", opened.start(), match.end(), "code fence removed", begins=opened.end())
            opened = None
    if opened is not None:
        title, begins = "code fence is not closed", opened.end()
        yield Candidate(text[begins:], "fence", opened.start(), len(text), title, open_ended=True, begins=begins)


_JSON_START = (re.compile(r"^[ \t]*([\[{])(?=\s*[\"'{\[}\]])", re.MULTILINE), re.compile(r"[ \t:]({)(?=\s*\")"))


def _json_in_prose(text: str) -> Iterator[Candidate]:
    """From the first line that starts with a bracket, or the first ``{"`` in a line, to the last bracket of that kind."""
    match = _JSON_START[0].search(text) or _JSON_START[1].search(text)
    if match is None:
        return
    start = match.start(1)
    end = text.rfind("]" if match[1] == "[" else "}") + 1
    if end > start and (start > 0 or end < len(text)):
        yield Candidate(text[start:end], "json", start, end, "text around the JSON removed", begins=start)


def _from_key(text: str, keys: frozenset[str]) -> Iterator[Candidate]:
    others: set[str] = set()
    for match in islice(_KEY_LINE.finditer(text), MOST_KEYS):
        if match[1] in others:
            continue
        others.add(match[1])
        if squash(match[1]) in keys:
            if match.start() > 0:
                begins, title = match.start(), "text before the document removed"
                yield Candidate(text[begins:], "key", begins, len(text), title, begins=begins)
            return
    for match in islice(_GLUED.finditer(text), MOST_KEYS):
        if squash(match[1]) in keys:
            title = "text before the first key of the same line removed"
            begins = match.start(1)
            yield Candidate(text[begins:], "glued", begins, len(text), title, begins=begins)
            return
