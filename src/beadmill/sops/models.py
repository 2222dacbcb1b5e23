"""The YAML's shape. Fields of the wider node format that this release does not act on are refused, never ignored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from beadmill.domain.values import Json

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
LATER = frozenset(
    {"when", "timeout", "retries", "on_failure", "concurrency", "env", "secrets", "notify", "inputs", "outputs"}
)


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Position(_Shape):
    """Where the designer draws the node; no meaning for the run."""

    x: float
    y: float


class NodeModel(_Shape):
    id: Name
    kind: Name
    title: str = Field(default="", max_length=200)
    description: str = Field(default="", max_length=2000)
    config: dict[str, Json] = {}
    join: Literal["all", "any"] = "all"
    ends: list[Name] = []
    seals: bool = False
    position: Position | None = None

    @model_validator(mode="before")
    @classmethod
    def _not_yet(cls, value: Json) -> Json:
        early = sorted(LATER & value.keys()) if isinstance(value, dict) else []
        if early:
            raise ValueError(f"{', '.join(early)}: part of the node format, but this release does not act on it")
        return value


class EdgeModel(_Shape):
    source: Name = Field(alias="from")
    outcome: Name
    target: Name = Field(alias="to")
    kind: Literal["next", "rework"] = "next"
    max_visits: int = Field(default=0, ge=0, le=1000)


class SopModel(_Shape):
    """``format`` is the version of this shape, not of the SOP: versions of SOPs are counted where they are stored."""

    format: Literal[1] = 1
    title: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=5000)
    start: Name
    nodes: list[NodeModel] = Field(min_length=1, max_length=200)
    edges: list[EdgeModel] = Field(default=[], max_length=2000)
