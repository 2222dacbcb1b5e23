"""Configuration of the execution nodes, as an SOP may write it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from beadmill.artifacts.command import Command
from beadmill.domain.command import CommandSpec


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NoConfig(Config):
    """Kinds that take everything from the run's settings."""


class BuildConfig(Config):
    attempts: int = Field(default=0, ge=0, le=20)  # 0 = the run's build.attempts


class QaConfig(Config):
    by_default: bool = True  # what the setting manual_qa = auto comes to


class ScriptConfig(Config):
    """Either ``command`` or a POSIX ``script``, run in the run's worktree, or in its workspace without a repository."""

    command: Command | None = None
    script: str = ""
    timeout_s: int = Field(default=600, ge=1, le=1800)

    @model_validator(mode="after")
    def _one_of_them(self) -> ScriptConfig:
        if (self.command is None) == (not self.script.strip()):
            raise ValueError("a script node has either command or script")
        return self

    @property
    def spec(self) -> CommandSpec:
        return self.command or CommandSpec(mode="shell", script=self.script)


class GateConfig(Config):
    """``text`` is what the person reads; the outcomes are ``approved`` and ``rejected``."""

    title: str = "Approve"
    text: str = ""
