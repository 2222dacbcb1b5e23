"""Local repairs of YAML, cheapest first. Each acts at the line where reading failed and is kept only when the failure
moves on. Repairs change quotes, spaces and line breaks, never words (``same_words``); two that take lines away (a tag or
fence line, prose after the document) say so and take away nothing that carries a key of the document."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from beadmill.artifacts.reading.candidates import squash
from beadmill.artifacts.reading.lines import Line, children, is_quoted, opaque, opens_block, quoted, split
from beadmill.artifacts.reading.notes import Notes
from beadmill.artifacts.reading.tree import BadText, Parsed, Work, from_yaml
from beadmill.artifacts.reading.vocabulary import Vocabulary

Lines = list[str]
Apply = Callable[[Lines, int, Vocabulary], Lines | None]
MOST_ROUNDS = 40
LONGEST_LINE = 20_000
LONGEST = 200_000  # characters of a text worth repairing


@dataclass(frozen=True, slots=True)
class Repair:
    title: str
    apply: Apply
    removes: bool = False
    certain: Callable[[Line, Vocabulary], bool] | None = None  # lines where the text cannot be meant otherwise


@dataclass(slots=True)
class _Bench:
    """The text under repair: its lines, what reading them gave, and what was done so far."""

    words: Vocabulary
    work: Work
    lines: Lines
    outcome: Parsed | BadText
    made: list[tuple[str, str]]

    def step(self, error: BadText) -> bool:
        """The first repair that lets reading go further is kept."""
        for repair in REPAIRS:
            for n in _places(self.lines, error):
                changed = repair.apply(self.lines, n, self.words)
                if changed is not None and changed != self.lines and self._keep(repair, n, changed, error=error):
                    return True
        return False

    def _keep(self, repair: Repair, n: int, changed: Lines, *, error: BadText) -> bool:
        if not repair.removes and not same_words(*_apart(self.lines, changed)):
            return False
        if repair.certain and sum(title == repair.title for title, _ in self.made) >= 2:
            changed = _everywhere(repair, changed, self.words)
        outcome = _outcome(changed, self.work)
        if isinstance(outcome, BadText) and not _further(changed, outcome, self.lines, error):
            return False
        self.made.append((repair.title, f"line {n + 1}: {self.lines[n].strip()[:160]}"))
        self.lines, self.outcome = changed, outcome
        return True


def repair_yaml(text: str, words: Vocabulary, work: Work, notes: Notes, *, first: BadText) -> Parsed:
    """``first`` is why the text cannot be read as it is. Raises BadText, the first one that nothing could repair."""
    bench = _Bench(words, work, text.split("\n"), first, [])
    for _ in range(MOST_ROUNDS):
        error = bench.outcome
        if isinstance(error, Parsed):
            break
        if error.told or len(text) > LONGEST or (error.cut and error.began >= len(bench.lines) - 1):
            raise error
        if not bench.step(error):
            raise error
    if isinstance(bench.outcome, BadText):
        raise bench.outcome
    for title, at in bench.made:
        notes.fixed(title, at)
    return bench.outcome


def _outcome(lines: Lines, work: Work) -> Parsed | BadText:
    try:
        return from_yaml("\n".join(lines), work)
    except BadText as error:
        return error


def _further(now: Lines, error: BadText, before: Lines, old: BadText) -> bool:
    """Whether less of the text is left unread than before."""
    if error.told:
        return False
    return (len(now) - error.line, -error.column) < (len(before) - old.line, -old.column)


def _places(lines: Lines, error: BadText) -> list[int]:
    """The failing line, where the failing thing began, and the line before."""
    at = min(error.line, len(lines) - 1)
    before = next((n for n in range(at - 1, -1, -1) if lines[n].strip()), at)
    found = [n for n in dict.fromkeys((at, min(error.began, at), before)) if 0 <= n < len(lines)]
    hidden = opaque(lines)
    return [n for n in found if n not in hidden and len(lines[n]) <= LONGEST_LINE]


_WORD = re.compile(r"\w+")


def _apart(before: Lines, after: Lines) -> tuple[str, str]:
    """Only where two texts differ: what a repair costs depends on what it touches, not on the whole reply."""
    first = next(
        (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    most = min(len(before), len(after)) - first
    last = next((n for n in range(most) if before[-1 - n] != after[-1 - n]), most)
    return "\n".join(before[first : len(before) - last]), "\n".join(after[first : len(after) - last])


def same_words(before: str, after: str) -> bool:
    return _WORD.findall(_plain_escapes(before)) == _WORD.findall(_plain_escapes(after))


def _plain_escapes(text: str) -> str:
    """Backslash and the letter after it read the same whether the backslash is doubled or not."""
    return re.sub(r"\\+", " ", text)


def _tabs(lines: Lines, n: int, _words: Vocabulary) -> Lines | None:
    if "\t" not in lines[n][: len(lines[n]) - len(lines[n].lstrip())]:
        return None
    hidden = opaque(lines)
    return [
        one if at in hidden else re.sub(r"^\t+" if at < n else r"^[ \t]+", lambda m: m[0].replace("\t", "  "), one)
        for at, one in enumerate(lines)
    ]


def _marker_line(lines: Lines, n: int, _words: Vocabulary) -> Lines | None:
    """A line that is only a fence or only a tag."""
    if re.fullmatch(r"\s*(?:`{3,}[\w+.-]*|~{3,}[\w+.-]*|</?[A-Za-z][\w.-]*\s*/?>)\s*", lines[n]):
        return lines[:n] + lines[n + 1 :]
    return None


def _space_after_colon(lines: Lines, n: int, words: Vocabulary) -> Lines | None:
    found = re.match(r"^(\s*(?:-\s+)*)([A-Za-z_][\w-]*):(?!//)(\S.*)$", lines[n])
    if found and words.knows(found[2]):
        return _put(lines, n, f"{found[1]}{found[2]}: {found[3]}")
    return None


def _space_after_dash(lines: Lines, n: int, _words: Vocabulary) -> Lines | None:
    """``-item`` beside ``- item`` of the same indent."""
    found = re.match(r"^(\s*)-([^\s\-].*)$", lines[n])
    if found and any(one.startswith(f"{found[1]}- ") for one in (*lines[max(0, n - 40) : n], *lines[n + 1 : n + 40])):
        return _put(lines, n, f"{found[1]}- {found[2]}")
    return None


def _escapes(lines: Lines, n: int, _words: Vocabulary) -> Lines | None:
    """A backslash that starts no YAML escape is a backslash."""
    line = split(lines[n])
    if line.value[:1] != '"':
        return None
    fixed = re.sub(
        r'\\(\\|["/ tnr]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})|\\', lambda m: m[0] if m[1] else "\\\\", line.value
    )
    return _put(lines, n, line.with_value(fixed)) if fixed != line.value else None


def _inner_quotes(lines: Lines, n: int, _words: Vocabulary) -> Lines | None:
    """``"say "hi" twice"`` → the inner ones escaped."""
    line = split(lines[n])
    mark = line.value[:1]
    if mark not in ("'", '"') or len(line.value) < 3 or line.value[-1] != mark or is_quoted(line.value):
        return None
    inner = line.value[1:-1]
    fixed = inner.replace("''", "'").replace("'", "''") if mark == "'" else re.sub(r'\\?"', r'\\"', inner)
    return _put(lines, n, line.with_value(f"{mark}{fixed}{mark}"))


def _one_line_keys(lines: Lines, n: int, words: Vocabulary) -> Lines | None:
    """``id: Q01, phase: Foundation, question: Why?``: several keys whose values, but for the last, are one word."""
    line = split(lines[n])
    parts = re.split(r"(?:,\s*|\s+)(?=(?:" + "|".join(_keys_in(lines[n], words)) + r"):\s)", lines[n][line.column :])
    pairs = [re.match(r"([A-Za-z_]\w*):\s+(.+)$", part) for part in parts]
    if len(pairs) < 2 or any(pair is None or not words.knows(pair[1]) for pair in pairs):
        return None
    if any(pair is None or " " in pair[2].strip() for pair in pairs[:-1]):
        return None
    parts = [part if re.match(r"\w+: [\w-]+$", part) else _colon_quoted(part) for part in parts]
    rest = [" " * line.column + part for part in parts[1:]]
    return [*lines[:n], lines[n][: line.column] + parts[0], *rest, *lines[n + 1 :]]


def _colon_quoted(pair: str) -> str:
    key, _, value = pair.partition(": ")
    return f"{key}: {quoted(value.strip())}" if re.search(r":(?:\s|$)", value) else pair


def _keys_in(text: str, words: Vocabulary) -> list[str]:
    """The known keys that a line spells; one that cannot occur when it spells none."""
    found = [word for word in re.findall(r"\b([A-Za-z_]\w{0,60}):\s", text) if words.knows(word)]
    return [re.escape(word) for word in dict.fromkeys(found)] or ["(?!)"]


def _quote_colon(lines: Lines, n: int, words: Vocabulary) -> Lines | None:
    """``key: one: two`` → the value quoted; ``- one: two: three`` → the item quoted, unless ``one`` is a key."""
    line = split(lines[n])
    if not line.key or not re.search(r":(?:\s|$)", line.value) or line.value[:1] in "\"'[{|>":
        return None
    if line.dash and not words.knows(line.key):
        text = lines[n][line.column : len(lines[n]) - len(line.comment)].rstrip()
        return _put(lines, n, lines[n][: line.column] + quoted(text) + line.comment)
    return _put(lines, n, line.with_value(quoted(line.value)))


def _everywhere(repair: Repair, lines: Lines, words: Vocabulary) -> Lines:
    """The same for every line that cannot be read otherwise: not in blocks, not after a quote that stays open."""
    hidden = opaque(lines)
    out = list(lines)
    for n, text in enumerate(lines):
        line = split(text)
        if n not in hidden and line.value[:1] in ("'", '"') and not is_quoted(line.value):
            return out
        if n not in hidden and repair.certain is not None and repair.certain(line, words):
            changed = repair.apply([text], 0, words)
            out[n] = changed[0] if changed else text
    return out


def _colon_for_sure(line: Line, words: Vocabulary) -> bool:
    return bool(line.key) and words.knows(line.key)


def _sign_for_sure(line: Line, _words: Vocabulary) -> bool:
    return line.value[:1] in tuple("@`%")


def _quote_value(lines: Lines, n: int, _words: Vocabulary) -> Lines | None:
    """A value that starts with a sign YAML keeps for itself (@ ` * & ! % | > [ {), or a quoted word and more text."""
    line = split(lines[n])
    if not line.value or is_quoted(line.value) or not (line.key or line.dash):
        return None
    if line.value[0] not in "@`*&!%|>[{]},?\"'" or (opens_block(lines[n]) and len(line.value) <= 3):
        return None
    if re.match(r"[&!]\S+(?:\s*$|\s+[\[{])|!!|\*\w+$", line.value):
        return None  # a real anchor, tag or alias
    if line.value[0] in "[{" and line.value[-1] in "]}":
        return None  # a list or mapping in one line: what is wrong inside it cannot be told
    return _put(lines, n, line.with_value(quoted(line.value)))


def _primary_key(lines: Lines, n: int, words: Vocabulary) -> Lines | None:
    """``- Q01`` and keys below it: the word is the id."""
    line = split(lines[n])
    after = split(lines[n + 1]) if n + 1 < len(lines) else None
    if not line.dash or line.key or not re.fullmatch(r"[\w.-]{1,60}", line.value) or "id" not in words.every:
        return None
    if after is None or after.dash or not words.knows(after.key) or after.indent <= line.indent:
        return None
    return _put(lines, n, f"{lines[n][: line.column]}id: {line.value}{line.comment}")


def _indent_dash(lines: Lines, n: int, _words: Vocabulary) -> Lines | None:
    """A list item one or two columns beside the items before it."""
    line = split(lines[n])
    if not line.dash:
        return None
    for before in range(n - 1, max(-1, n - 200), -1):
        other = split(lines[before])
        if other.dash and other.indent != line.indent and abs(other.indent - line.indent) <= 2:
            return _shift(lines, n, other.indent - line.indent, line.indent)
        if not other.blank and other.indent < line.indent - 2:
            return None
    return None


def _indent_key(lines: Lines, n: int, words: Vocabulary) -> Lines | None:
    """A known key one column beside the keys of the mapping that is open."""
    line = split(lines[n])
    if line.dash or not words.knows(line.key):
        return None
    columns = {o.column for o in map(split, lines[max(0, n - 60) : n]) if o.key}
    near = [c for c in (line.indent - 1, line.indent + 1) if c in columns]
    return _shift(lines, n, near[0] - line.indent, line.indent) if len(near) == 1 else None


def _shift(lines: Lines, n: int, by: int, indent: int) -> Lines:
    """Line ``n`` and everything below it moved by ``by`` columns."""
    end = children(lines, n, indent)
    moved = [(" " * by + one if by > 0 else one[-by:]) if one.strip() else one for one in lines[n:end]]
    return lines[:n] + moved + lines[end:]


def _text_block(lines: Lines, n: int, words: Vocabulary) -> Lines | None:
    """A text over several lines without ``|``: made a block, when its key holds one text."""
    start = next((m for m in range(n, max(-1, n - 200), -1) if squash(split(lines[m]).key) in words.texts), None)
    if start is None or opens_block(lines[start]):
        return None
    head = split(lines[start])
    end = children(lines, start, head.column)
    if end <= start + 1 or n >= end or head.value[:1] in ("'", '"'):
        return None
    body = lines[start + 1 : end]
    least = min(len(one) - len(one.lstrip(" ")) for one in body if one.strip())
    pad = " " * (head.column + 2)
    first = [pad + head.value] if head.value else []
    block = first + [pad + one[least:] if one.strip() else "" for one in body]
    return [*lines[:start], head.head.rstrip() + " |-" + head.comment, *block, *lines[end:]]


def _hash(lines: Lines, n: int, _words: Vocabulary) -> Lines | None:
    """``fix issue #5``: the number is text, not a comment."""
    line = split(lines[n])
    if not re.search(r"\s#\S", line.value) or line.value[0] in "\"'[{|>" or not (line.key or line.dash):
        return None
    return _put(lines, n, line.with_value(quoted(line.value)))


def _fold(lines: Lines, n: int, words: Vocabulary) -> Lines | None:
    """A sentence wrapped over two lines whose second half looks like a key or stands too far left."""
    before = next((m for m in range(n - 1, -1, -1) if lines[m].strip()), None)
    if before is None or n - before != 1:
        return None
    first, line = split(lines[before]), split(lines[n])
    if (
        lines[n].strip() in ("---", "...")
        or line.dash
        or not first.value
        or first.value[0] in "[{|>"
        or words.knows(line.key)
        or words.knows(_key_behind_signs(lines[n]))
        or first.comment
    ):
        return None
    inner = first.value[1:-1] if is_quoted(first.value) else first.value
    if first.value[0] in "\"'" and not (first.value[0] == '"' and is_quoted(first.value)):
        return None
    start = lines[before][first.column :].strip() if first.dash and first.key and not words.knows(first.key) else None
    head = lines[before][: first.column] if start else first.head
    text = f"{start or inner} {lines[n].strip()}"
    value = f'"{text}"' if is_quoted(first.value) and not start else quoted(text)
    space = "" if head.endswith((" ", "\t")) or not head else " "
    return [*lines[:before], f"{head}{space}{value}", *lines[n + 1 :]]


def _key_behind_signs(text: str) -> str:
    found = re.match(r"\W*([A-Za-z_]\w*)[\"']?:(?:\s|$)", text)
    return found[1] if found else ""


def _open_quote(lines: Lines, n: int, _words: Vocabulary) -> Lines | None:
    """A quote that is opened and never closed on its line: the mark is part of the text or a slip; the text is kept."""
    line = split(lines[n])
    mark = line.value[:1]
    if mark not in ("'", '"') or line.value.count(mark) != 1 or n + 1 >= len(lines):
        return None
    after = split(lines[n + 1])
    if not (after.key or after.dash):
        return None
    return _put(lines, n, line.with_value(quoted(line.value[1:])))


def _prose_after(lines: Lines, n: int, words: Vocabulary) -> Lines | None:
    """Text after a blank line at the left margin, to the end, with no key of the document in it."""
    start = next((m for m in range(n, 0, -1) if not lines[m - 1].strip()), None)
    if start is None and lines[n].strip() in ("---", "..."):
        start = n
    if start is None or not lines[start].strip() or (lines[start][:1] in " \t-#" and lines[start].strip() != "---"):
        return None
    if any(words.knows(split(one).key) for one in lines[start:] if split(one).key):
        return None
    return lines[:start]


def _put(lines: Lines, n: int, text: str) -> Lines:
    return [*lines[:n], text, *lines[n + 1 :]]


REPAIRS: tuple[Repair, ...] = (
    Repair("tabs in the indent became spaces", _tabs),
    Repair("fence or tag line removed", _marker_line, removes=True),
    Repair("space put after a colon", _space_after_colon),
    Repair("space put after a dash", _space_after_dash),
    Repair("backslash kept as a backslash", _escapes),
    Repair("quotes inside quotes escaped", _inner_quotes),
    Repair("several keys on one line separated", _one_line_keys),
    Repair("text with a colon quoted", _quote_colon, certain=_colon_for_sure),
    Repair("quote that is never closed", _open_quote),
    Repair("text quoted", _quote_value, certain=_sign_for_sure),
    Repair("text with a # quoted", _hash),
    Repair("word of a list item taken as its id", _primary_key, removes=True),
    Repair("list item moved to the others", _indent_dash),
    Repair("key moved to the others", _indent_key),
    Repair("text over several lines made a block", _text_block),
    Repair("wrapped sentence joined", _fold),
    Repair("text after the document removed", _prose_after, removes=True),
)
