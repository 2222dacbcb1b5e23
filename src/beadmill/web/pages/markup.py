"""Text of people and agents as HTML that is safe: markdown, code, diffs. Nothing else of theirs is ever HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, emphasis
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

TEXT = ("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote")
TAGS = {*TEXT, "pre", "code", "em", "strong", "del", "a", "table", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"a": {"href", "title"}, "code": {"class"}, "th": {"align"}, "td": {"align"}}
SCHEMES = {"http", "https", "mailto"}
LONGEST = 300_000  # characters that are highlighted; longer texts are shown plain


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    made.inline.ruler.at("emphasis", _stars_only)
    return made


def _stars_only(state: StateInline, silent: bool) -> bool:
    """Names like ``__main__`` are more frequent in tickets than emphasis by underscores."""
    return state.src[state.pos] != "_" and emphasis.tokenize(state, silent)


def markdown(text: str | None) -> Markup:
    """Headings begin below those of the page and go down one by one, so a page keeps one outline."""
    parser = _parser()
    tokens = parser.parse(text or "")
    _outlined(tokens)
    made = parser.renderer.render(tokens, parser.options, {})
    clean = nh3.clean(made, tags=TAGS, attributes=ATTRIBUTES, url_schemes=SCHEMES, link_rel="noopener noreferrer")
    return Markup(clean)  # noqa: S704 - cleaned just above


def _outlined(tokens: Sequence[Token]) -> None:
    above: list[str] = []
    for token in tokens:
        if token.type == "heading_open":
            above = [*(tag for tag in above if tag < token.tag), token.tag]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(2 + len(above), 6)}"


def code(text: str, language: str) -> Markup:
    """Highlighted by classes; the colours are in the style sheet."""
    if len(text) > LONGEST:
        return Markup("<pre>{}</pre>").format(text)
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return Markup("<pre>{}</pre>").format(text)
    return Markup(highlight(text, lexer, HtmlFormatter(nowrap=False, cssclass="code")))  # noqa: S704 - Pygments escapes


# --- diffs --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Line:
    """``sign`` is +, -, a space or @ (a hunk's heading)."""

    sign: str
    old: int | None
    new: int | None
    html: Markup


@dataclass(frozen=True, slots=True)
class FileDiff:
    path: str
    note: str
    added: int
    removed: int
    lines: tuple[Line, ...]


HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")
MOST_LINES = 3_000  # of one file


def diff(text: str) -> tuple[FileDiff, ...]:
    """A unified diff by file. Works for git's and for difflib's."""
    return tuple(_file(part) for part in _files(text))


def _files(text: str) -> Iterator[list[str]]:
    part: list[str] = []
    for line in text.splitlines():
        fresh = line.startswith("diff --git ") or (
            line.startswith("--- ") and not any(x.startswith("diff ") for x in part)
        )
        if fresh and part:
            yield part
            part = []
        part.append(line)
    if part:
        yield part


def _file(lines: Sequence[str]) -> FileDiff:
    head = [line for line in lines if not HUNK.match(line)][:8]
    path = _path(head)
    body = list(_numbered(lines))
    shown = _coloured(path, body[:MOST_LINES])
    note = next((x for x in head if x.startswith(("new file", "deleted file", "rename to", "Binary files"))), "")
    if len(body) > MOST_LINES:
        note = f"{note} (first {MOST_LINES} of {len(body)} lines)".strip()
    added, removed = (sum(sign == s for sign, _, _, _ in body) for s in "+-")
    return FileDiff(path, note, added, removed, shown)


def _path(head: Sequence[str]) -> str:
    for start in ("+++ ", "--- "):
        named = next((x[4:] for x in head if x.startswith(start) and not x.endswith("/dev/null")), "")
        if named:
            return named.removeprefix("b/").removeprefix("a/")
    return head[0].rpartition(" b/")[2] if head else ""


def _numbered(lines: Sequence[str]) -> Iterator[tuple[str, int | None, int | None, str]]:
    old = new = 0
    inside = False
    for line in lines:
        if found := HUNK.match(line):
            old, new, inside = int(found[1]), int(found[2]), True
            yield "@", None, None, found[3]
        elif inside and line[:1] in ("+", "-", " ", ""):
            sign = line[:1] or " "
            yield sign, (old if sign != "+" else None), (new if sign != "-" else None), line[1:]
            old, new = old + (sign != "+"), new + (sign != "-")


def _coloured(path: str, body: Sequence[tuple[str, int | None, int | None, str]]) -> tuple[Line, ...]:
    """Each side of the change is highlighted as one text, so strings over several lines stay right."""
    texts = [text for *_rest, text in body]
    try:
        lexer = get_lexer_for_filename(path, stripnl=False)
        made = highlight("\n".join(texts), lexer, HtmlFormatter(nowrap=True)).split("\n")
        html = [Markup(line) for line in made]  # noqa: S704 - Pygments escapes
    except ClassNotFound:
        html = []
    if len(html) < len(texts):
        html = [escape(text) for text in texts]
    return tuple(Line(sign, old, new, html[n]) for n, (sign, old, new, _) in enumerate(body))
