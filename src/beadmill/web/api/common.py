"""What every route needs: the ports, who asks, the headers of a write, and the route table as a decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request
from pydantic import BaseModel, ConfigDict, model_validator

from beadmill.domain.values import Actor, Json
from beadmill.operations.ports import Ports
from beadmill.operations.routes import PREFIX, ROUTES

F = TypeVar("F", bound=Callable[..., Any])


class Problem(BaseModel):
    code: str
    message: str
    details: dict[str, Json]
    kept: str
    next: str


class Envelope(BaseModel):
    """Every error of every endpoint."""

    error: Problem


class Body(BaseModel):
    """A request body: unknown fields are refused, so a typo is never a silent default."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _no_nul(cls, value: Any) -> Any:
        """PostgreSQL has no NUL in text, and no person means one."""
        if _has_nul(value):
            raise ValueError("the text holds a NUL character; take it out")
        return value


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(k) or _has_nul(v) for k, v in value.items())
    return isinstance(value, list) and any(map(_has_nul, value))


REASONS: Final = {
    400: "The request cannot be understood",
    401: "No credential, or one that does not hold",
    403: "Not allowed",
    404: "Not there",
    409: "The world is not what the caller thought, or changed meanwhile",
    413: "The body is larger than 2 MiB",
    422: "Well-formed, yet not valid",
    428: "If-Match is missing",
    429: "Too many requests in this minute",
}
# Only 422 names the model, which puts it into the document once; nine models a route would be a third of the start.
ENVELOPE: Final[dict[str, Any]] = {"application/json": {"schema": {"$ref": "#/components/schemas/Envelope"}}}
ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": said, **({"model": Envelope} if status == 422 else {"content": ENVELOPE})}
    for status, said in REASONS.items()
}


def route(router: APIRouter, operation: str, **options: Any) -> Callable[[F], F]:
    """Serves ``operation`` where the table says. The operation's docstring is the route's."""
    line = ROUTES[operation]
    area = operation.partition(".")[0]
    return router.api_route(
        PREFIX + line.path, methods=[line.method], operation_id=operation, tags=[area], responses=ERRORS, **options
    )


def _ports(request: Request) -> Ports:
    ports: Ports = request.app.state.web.ports
    return ports


def _actor(request: Request) -> Actor:
    actor: Actor = request.scope["actor"]
    return actor


def _if_match(value: Annotated[str | None, Header(alias="If-Match")] = None) -> str | None:
    """The ETag without its quotes and weak mark; None when the header is missing."""
    return None if value is None else value.strip().removeprefix("W/").strip('"')


def _key(value: Annotated[str, Header(alias="Idempotency-Key", max_length=200)] = "") -> str:
    return value.strip()


InPorts = Annotated[Ports, Depends(_ports)]
Who = Annotated[Actor, Depends(_actor)]
IfMatch = Annotated[str | None, Depends(_if_match)]
Key = Annotated[str, Depends(_key)]
Limit = Annotated[int | None, Query(description="1 to 200, default 50")]
Cursor = Annotated[str, Query(description="`next` of the page before")]
