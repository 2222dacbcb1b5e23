"""Configuration of the execution nodes, as an SOP may write it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from beadmill.artifacts.command import Command


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NoConfig(Config):
    """Kinds that take everything from the run's settings."""


class BuildConfig(Config):
    attempts: int = Field(default=0, ge=0, le=20)  # 0 = the run's build.attempts


class ScriptConfig(Config):
    """Either ``command`` or a POSIX ``script``; ``where`` says in which folder of the workspace it runs."""

    command: Command | None = None
    script: str = ""
    timeout_s: int = Field(default=600, ge=1, le=1800)


class GateConfig(Config):
    """``choices`` are the outcomes; their order is the order of the buttons."""

    title: str = "Approve"
    choices: tuple[str, ...] = ("approved", "rejected")
    text: str = ""
