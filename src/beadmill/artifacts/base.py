"""Document: a typed, versioned, content-hashed artifact."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from beadmill.domain.values import Sha

_ODD_BYTE = re.compile("[\udc80-\udcff]")  # how Python carries a byte that is no UTF-8
KINDS: dict[str, type[Document]] = {}


class Record(BaseModel):
    """A part of a document. Unknown keys are refused: reading/ has already dealt with what models add."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CamelRecord(Record):
    """For the bead family, whose keys are camelCase in JSON (reference §5.3)."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, alias_generator=to_camel, serialize_by_alias=True
    )


class Document(Record):
    """A document kind. ``kind`` is its name everywhere: rows, files, API, prompts."""

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.kind:
            KINDS[cls.kind] = cls

    def canonical(self) -> bytes:
        """The bytes that are hashed: JSON, sorted keys, no spaces, UTF-8, one newline at the end. A byte of a file name
        that is no UTF-8 is shown as ``\\xe9``: documents tell of files, git finds them."""
        value = self.model_dump(mode="json")
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")) + "\n"
        try:
            return text.encode()
        except UnicodeEncodeError:
            return _ODD_BYTE.sub(lambda byte: f"\\\\x{ord(byte[0]) - 0xDC00:02x}", text).encode("utf-8", "replace")

    @property
    def sha256(self) -> Sha:
        return Sha(hashlib.sha256(self.canonical()).hexdigest())

    @classmethod
    def parse(cls, data: bytes) -> Self:
        return cls.model_validate_json(data)
