"""The YAML's shape: the whole node format. What this release does not act on is refused by the lint, never ignored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from beadmill.domain.values import Json

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Position(_Shape):
    """Where the designer draws the node; no meaning for the run."""

    x: float
    y: float


class InputModel(_Shape):
    """``from``: ``run.<parameter>``, ``<node>.<output>``, ``artifact.<kind>`` or ``ticket.<field>``."""

    name: Name
    source: str = Field(alias="from", pattern=r"^[a-z][a-z0-9_-]*\.[A-Za-z0-9_.-]+$")
    required: bool = True


class OutputModel(_Shape):
    name: Name
    kind: Literal["file", "dir", "text", "json", "diff", "pr", "verdict"]
    path: str = ""
    json_schema: dict[str, Json] | None = Field(default=None, alias="schema")
    required: bool = True


class RetriesModel(_Shape):
    max: int = Field(default=0, ge=0, le=20)
    backoff: float = Field(default=0, ge=0)  # seconds


class OnFailureModel(_Shape):
    goto: Name
    max_visits: int = Field(ge=1, le=1000)


class NodeModel(_Shape):
    """The fields from ``inputs`` on are part of the node format; the lint refuses them until a release acts on them."""

    id: Name
    kind: Name
    title: str = Field(default="", max_length=200)
    description: str = Field(default="", max_length=2000)
    config: dict[str, Json] = {}
    join: Literal["all", "any"] = "all"
    ends: list[Name] = []
    seals: bool = False
    position: Position | None = None

    inputs: list[InputModel] = []
    outputs: list[OutputModel] = []
    when: str | None = Field(default=None, max_length=1000)
    timeout: float | None = Field(default=None, gt=0)  # seconds
    retries: RetriesModel | None = None
    on_failure: Literal["fail", "continue"] | OnFailureModel | None = None
    concurrency: Name | None = None
    env: dict[str, str] = {}
    secrets: list[str] = []
    notify: list[str] = []

    @property
    def not_acted_on(self) -> tuple[str, ...]:
        """Fields that are set and that this release would silently ignore."""
        return tuple(name for name in LATER if name in self.model_fields_set)


LATER = ("inputs", "outputs", "when", "timeout", "retries", "on_failure", "concurrency", "env", "secrets", "notify")


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
