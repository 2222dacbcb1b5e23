"""Forms of the screens: text fields as posted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request


@dataclass(frozen=True, slots=True)
class Posted:
    """The fields of a form. ``get`` is the last value of a name, ``all`` every one."""

    fields: Mapping[str, tuple[str, ...]]

    def get(self, name: str, otherwise: str = "") -> str:
        return (self.fields.get(name) or (otherwise,))[-1]

    def all(self, name: str) -> tuple[str, ...]:
        return self.fields.get(name, ())

    def starting(self, prefix: str) -> dict[str, str]:
        return {name.removeprefix(prefix): self.get(name) for name in self.fields if name.startswith(prefix)}


MOST_FIELDS = 20_000  # a long plan as a form; the body's size is limited before
MOST_TEXT = 2 * 1024 * 1024  # bytes of one field


async def posted(request: Request) -> Posted:
    """Files are not taken anywhere, so they are left out. Line ends become plain."""
    form = await request.form(max_fields=MOST_FIELDS, max_part_size=MOST_TEXT)
    names = dict.fromkeys(form.keys())
    return Posted({n: tuple(_text(v) for v in form.getlist(n) if isinstance(v, str)) for n in names})


def _text(value: str) -> str:
    """As typed: with line ends of one kind, and without what no database text may hold."""
    return value.replace("\r\n", "\n").replace("\0", "")


def seat(one: Any) -> str:
    if isinstance(one, Mapping):
        return "/".join(str(one.get(k) or "") for k in ("agent", "model", "effort")).rstrip("/")
    return str(one)
