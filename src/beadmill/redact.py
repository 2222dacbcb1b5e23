"""One funnel for secrets: every event, log and output tail passes here before it is written. Standard library only.

Two sources: values of environment variables whose names say that they are secret, and text that looks like a key.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

MASK: Final = "[redacted]"
_ODD: Final = re.compile("[\0\ud800-\udfff]")
HOLD: Final = 65_536  # bytes of an unfinished line kept back before it is scrubbed in pieces
OVERLAP: Final = 4_096  # what a piece leaves behind, so that no key is cut in two

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:KEY|PAT)$|_PWD$|(?:^|_)(?:API_?KEY|ACCESS_KEY|PRIVATE_KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE"
    r"|CREDENTIALS?)(?:_|$)",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"\A\w[\w+.-]*://[^\s/:@]*:([^\s/@]+)@")  # the password of a DATABASE_URL
_SHORTEST: Final = 8  # a shorter value would mask innocent text
_PRIVATE = r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
_PRIVATE_END = r"-----END [A-Z ]*PRIVATE KEY-----"
_BEGIN, _END = re.compile(_PRIVATE), re.compile(_PRIVATE_END)
_WHOLE = re.compile(rf"{_PRIVATE}[\s\S]*?(?:{_PRIVATE_END}|\Z)")
_HEADLESS = re.compile(rf"\A(?:(?!{_PRIVATE})[\s\S])*?{_PRIVATE_END}")
# What a key begins with, and the whole of it. The literal is looked for first: it is a thousand times cheaper.
_PATTERNS: Final = tuple(
    (literal, re.compile(pattern))
    for literal, pattern in (
        ("sk-", r"\bsk-(?:ant-|proj-|svcacct-|or-)?[A-Za-z0-9_-]{20,}"),  # model providers
        ("gh", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
        ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
        ("glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
        ("xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("AKIA", r"\bAKIA[A-Z0-9]{16}\b"),
        ("ASIA", r"\bASIA[A-Z0-9]{16}\b"),
        ("AIza", r"\bAIza[A-Za-z0-9_-]{35}"),
        ("npm_", r"\bnpm_[A-Za-z0-9]{36}"),
        ("pypi-", r"\bpypi-[A-Za-z0-9_-]{40,}"),
        ("hf_", r"\bhf_[A-Za-z0-9]{30,}"),
        ("eyJ", r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"),  # JSON web tokens
        ("earer ", r"(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{16,}"),
        ("://", r"(?<=://)[^\s/:@\"']{0,256}:[^\s/@\"']{1,256}(?=@)"),  # user:password in an address
    )
)


def secrets_of(env: Mapping[str, str]) -> tuple[str, ...]:
    """The values worth hiding: named as a secret and long enough not to be a word; passwords in addresses."""
    named = [v for k, v in env.items() if _SECRET_NAME.search(k)]
    inside = [found[1] for v in env.values() if (found := _IN_ADDRESS.match(v))]
    return tuple(v for v in (*named, *inside) if len(v) >= _SHORTEST)


def clean(text: str) -> str:
    """Text that every store accepts: NUL and lone surrogates become U+FFFD."""
    return text if text.isascii() and "\0" not in text else _ODD.sub("\ufffd", text)


class Redactor:
    """Knows the secret values of one process; ``text`` and ``json`` return the same thing without them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._values: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Each as it is, and as base64 and addresses would carry it."""
        for secret in secrets:
            if len(secret) >= _SHORTEST:
                encoded = base64.b64encode(secret.encode("utf-8", "surrogateescape")).decode().rstrip("=")
                self._known.update((secret, encoded, quote(secret, safe="", errors="surrogateescape")))
        longest_first = sorted(self._known, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        text = self._known_out(text)
        if "PRIVATE KEY-----" in text:
            text = _HEADLESS.sub(MASK, _WHOLE.sub(MASK, text))
        for literal, pattern in _PATTERNS:
            if literal in text:
                text = pattern.sub(MASK, text)
        return text

    def json(self, value: Any) -> Any:
        """Keys are kept; every string below is scrubbed and cleaned."""
        return _strings(value, lambda text: clean(self.text(text)))

    def work(self, value: Any) -> Any:
        """For what an agent made: only known secrets go, since an example key in a document is not a leak."""
        return _strings(value, lambda text: clean(self._known_out(text)))

    def _known_out(self, text: str) -> str:
        return self._values.sub(MASK, text) if self._values is not None else text

    def tail(self, raw: bytes, limit: int) -> str:
        """The last ``limit`` bytes as text. ``raw`` should hold a little more, so that a cut key is still seen whole."""
        text = clean(self.text(raw.decode("utf-8", "replace"))).encode()
        return text[-limit:].decode("utf-8", "ignore")


def _strings(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {str(k): _strings(v, change) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_strings(v, change) for v in value]
    return value


_MET: Final[set[str]] = set()


def met(text: str) -> None:
    """An address that this process came across: its password is a secret from now on."""
    found = _IN_ADDRESS.match(text)
    if found:
        _MET.add(found[1])


def learn(secret: str) -> None:
    """A secret that came from elsewhere than the environment: a file, another program."""
    if len(secret) >= _SHORTEST:
        _MET.add(secret)


def known() -> tuple[str, ...]:
    """The secrets of this process now."""
    return (*secrets_of(os.environ), *sorted(_MET))


def ours() -> Redactor:
    """Knows the secrets of this process now."""
    return Redactor(known())


class Scrubber:
    """Scrubs a byte stream line by line, a private key over several lines included."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""
        self._in_key = False

    def feed(self, data: bytes) -> bytes:
        whole, newline, rest = (self._held + data).rpartition(b"\n")
        ready = whole + newline
        if len(rest) > HOLD:
            ready, rest = ready + rest[:-OVERLAP], rest[-OVERLAP:]
        self._held = rest
        return self._scrub(ready)

    def end(self) -> bytes:
        rest, self._held = self._held, b""
        return self._scrub(rest)

    def _scrub(self, data: bytes) -> bytes:
        text = data.decode("utf-8", "replace")
        if self._in_key:
            end = _END.search(text)
            if end is None:
                return b""
            self._in_key, text = False, text[end.end() :]
        begins = list(_BEGIN.finditer(text))
        self._in_key = bool(begins) and _END.search(text, begins[-1].end()) is None
        return self._redactor.text(text).encode("utf-8", "replace")
