"""Static files under addresses that carry the hash of their content, so a browser may keep them for ever."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = Path(__file__).parents[1] / "static"
FOR_EVER = "private, max-age=31536000, immutable"


@cache
def address(name: str) -> str:
    """``/static/<first 12 digits of the hash>/<name>``."""
    return f"/static/{_digest(name)}/{name}"


@cache
def _digest(name: str) -> str:
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]


class Assets(StaticFiles):
    """The first part of the path is the hash: it is for the browser's cache and not looked at here."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    async def get_response(self, path: str, scope: Scope) -> Response:
        _, _, name = path.partition("/")
        answer = await super().get_response(name, scope)
        answer.headers["Cache-Control"] = FOR_EVER
        return answer
