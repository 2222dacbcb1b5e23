"""Settings of the installation, and RunSettings: what a run freezes when it starts."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from beadmill.errors import Unprocessable

GatePolicy = Literal["required", "auto_when_clean", "off"]


def default_home() -> Path:
    """``BEADMILL_HOME``, else the platform's data folder."""
    return Path(os.environ.get("BEADMILL_HOME") or platformdirs.user_data_dir("beadmill")).absolute()


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class SeatConfig(_Group):
    """Agent + model + effort, as written in settings: ``codex``, ``codex/gpt-5``, ``codex/gpt-5/high``,
    ``opencode/anthropic/claude-sonnet-5/high``. A last part that is no effort belongs to the model's name."""

    agent: str
    model: str = ""
    effort: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            agent, _, rest = value.partition("/")
            model, slash, effort = rest.rpartition("/")
            if not slash or effort not in EFFORTS:
                model, effort = rest.removesuffix("/"), ""
            return {"agent": agent, "model": model, "effort": effort}
        return value


class CouncilSettings(_Group):
    seats: tuple[SeatConfig, ...] = Field(default=(), max_length=10)
    mode: Literal["council", "solo"] = "council"
    quorum: int = Field(default=2, ge=1, le=10)
    deadline_s: int = Field(default=1200, ge=10, le=3600)
    structured_retries: int = Field(default=1, ge=0, le=5)
    interview_questions: int = Field(default=50, ge=0, le=50)
    follow_up_percent: int = Field(default=20, ge=0, le=100)
    interview_passes: int = Field(default=2, ge=1, le=10)
    prd_passes: int = Field(default=5, ge=2, le=20)
    beads_passes: int = Field(default=5, ge=2, le=20)


class GateSettings(_Group):
    """Policy per gate. Merge is always a person's."""

    interview: GatePolicy = "required"
    prd: GatePolicy = "required"
    beads: GatePolicy = "required"
    setup: GatePolicy = "required"


class BuildSettings(_Group):
    attempts: int = Field(default=5, ge=1, le=20)
    parallel: int = Field(default=1, ge=1, le=8)  # beads at the same time
    iteration_s: int = Field(default=1200, ge=10, le=3600)
    idle_s: int = Field(default=600, ge=10, le=3600)
    command_s: int = Field(default=1200, ge=1, le=3600)
    setup_s: int = Field(default=1200, ge=10, le=3600)
    continuations: int = Field(default=5, ge=0, le=20)
    max_steps: int = Field(default=0, ge=0, le=500)  # calls of tools per turn of coding; 0 = no cap
    earlier: bool = True  # a bead is also proved by the commands of earlier beads
    red_on_base: Literal["flag", "fail", "off"] = "flag"
    tamper: Literal["flag", "fail", "off"] = "flag"
    bead_review: Literal["flag", "fail", "off"] = "off"
    review: Literal["flag", "fail", "off"] = "flag"


class BudgetSettings(_Group):
    """Unset = no limit. A warning at 80 %, a budget gate at 100 %."""

    usd: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    minutes: float | None = Field(default=None, gt=0)


class PriceSettings(_Group):
    """US dollars per million tokens. ``cached`` unset = as ``input``."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)


class LimitSettings(_Group):
    """What happens at a provider's usage limit. ``fallback`` None = wait, however long."""

    fallback: SeatConfig | None = None
    wait_minutes: int = Field(default=60, ge=0, le=10_080)


class QuestionSettings(_Group):
    enabled: bool = True
    window_s: int = Field(default=300, ge=60, le=3600)


def _within_ports(host: str) -> str:
    port = host.rpartition(":")[2]
    if port.isdigit() and ":" in host and int(port) > 65_535:
        raise ValueError(f"{port} is no port")
    return host


# A name, "*." before it for all below it, an address, each with a port or without.
_HOST = r"^(?:(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,250}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(?::[1-9][0-9]{0,4})?$"
# What podman and docker call a reference: never an option of theirs.
Image = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9._:/@-]{0,254})?$")]
AllowedHost = Annotated[str, StringConstraints(pattern=_HOST), AfterValidator(_within_ports)]


class RunSettings(_Group):
    """Everything a run freezes at start. Defaults and ranges: reference looptroop-platform §1.2 and deliver.md."""

    implementer: SeatConfig | None = None  # None = the first council seat
    council: CouncilSettings = CouncilSettings()
    gates: GateSettings = GateSettings()
    build: BuildSettings = BuildSettings()
    budget: BudgetSettings = BudgetSettings()
    questions: QuestionSettings = QuestionSettings()
    limits: LimitSettings = LimitSettings()
    manual_qa: Literal["auto", "on", "off"] = "auto"  # auto: as the SOP's qa node says
    sandbox: Literal["auto", "bubblewrap", "container", "host"] = "auto"  # a start freezes what auto came to
    sandbox_image: Image = ""  # whose programs a container shows; empty = this machine's
    network: Literal["on", "off", "allow-list"] = "on"  # off: of commands that Beadmill runs; agents need their model
    allow_hosts: tuple[AllowedHost, ...] = ()  # what commands and agents reach with network = allow-list
    readable: tuple[str, ...] = ()  # absolute folders that a sandbox shows read-only
    agent_slots: int = Field(default=4, ge=1, le=64)
    parallel_tickets: int = Field(default=2, ge=1, le=16)
    context_tokens: int = Field(default=100_000, ge=8_000)

    @classmethod
    def thawed(cls, frozen: dict[str, Any]) -> RunSettings:
        """What a run froze, as this release understands it: a setting that is gone since is left out, so that a run
        that waits outlives an upgrade. Raises pydantic.ValidationError for a value that no longer is one."""
        return cls.model_validate(_known(cls, frozen))

    def renewed(self, live: dict[str, Any]) -> RunSettings:
        """With what was recorded of the settings that a run does not freeze."""
        return self.overlaid(_known(RunSettings, live))

    def overlaid(self, *layers: dict[str, Any]) -> RunSettings:
        """Later layers win, merged key by key; the result is validated whole. Raises pydantic.ValidationError."""
        merged = self.model_dump(mode="json")
        for layer in layers:
            _merge(merged, layer)
        return RunSettings.model_validate(merged)


def _known(model: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    """``values`` without the keys that ``model`` and its groups do not have."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        field = model.model_fields.get(name)
        if field is not None:
            group = field.annotation
            deeper = isinstance(value, dict) and isinstance(group, type) and issubclass(group, BaseModel)
            kept[name] = _known(group, value) if deeper and isinstance(group, type) else value
    return kept


def _merge(into: dict[str, Any], layer: dict[str, Any]) -> None:
    for key, value in layer.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict) and key != "implementer":  # a seat is one value
            _merge(into[key], value)
        else:
            into[key] = value


class Settings(BaseSettings):
    """The installation: flag → environment (BEADMILL_*) → <home>/config.toml → default."""

    model_config = SettingsConfigDict(env_prefix="BEADMILL_", env_nested_delimiter="__", extra="ignore", frozen=True)

    home: Path = Field(default_factory=default_home)
    host: Literal["127.0.0.1"] = "127.0.0.1"
    port: int = Field(default=7420, ge=0, le=65535)  # taken default → a free one; an explicit taken port is an error
    database_url: str = ""  # "" = SQLite in the home
    workspaces: Path | None = None  # None = <home>/workspaces
    synchronous: Literal["NORMAL", "FULL"] = "NORMAL"  # SQLite; NORMAL may lose the last commits at power loss
    agents: dict[str, dict[str, Any]] = Field(default_factory=dict)  # per agent: path, env, options
    prices: dict[str, PriceSettings] = Field(default_factory=dict)  # by model or pattern: before all other prices
    defaults: RunSettings = RunSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        home = init_settings().get("home") or default_home()
        toml = TomlConfigSettingsSource(settings_cls, Path(home) / "config.toml")
        return init_settings, env_settings, toml

    @classmethod
    def read(cls, **given: Any) -> Settings:
        """``given`` is what the program was started with. Raises Unprocessable with the file and the line, or with
        every value that cannot be."""
        file = Path(given.get("home") or default_home()) / "config.toml"
        try:
            return cls(**given)
        except tomllib.TOMLDecodeError as error:
            said, follow = f"{file} is no TOML: {error}", "correct the line, then start again"
        except UnicodeDecodeError as error:
            said, follow = f"{file} is no text in UTF-8: {error}", "save it as UTF-8, then start again"
        except ValidationError as error:
            # Never the value itself: it goes to a log, and may be a password in an address or an agent's key.
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            said, follow = f"the settings cannot be used: {wrong}", f"correct {file} or the BEADMILL_ variable"
        raise Unprocessable(said, code="CONFIG_FILE", kept="nothing was started, nothing changed", next=follow)

    @property
    def workspace_root(self) -> Path:
        return self.workspaces or self.home / "workspaces"

    @property
    def url(self) -> str:
        return self.database_url or f"sqlite:///{self.home / 'beadmill.db'}"
