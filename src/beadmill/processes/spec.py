"""What crosses into the runner. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Literal, TypeAlias

from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import SessionRef
from beadmill.domain.values import Access, Brief, Json, Seat


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One turn of one agent. ``budget`` is WORKING time, counted by the runner and held only by an open question;
    ``idle`` is the longest silence. ``resume`` continues a conversation of the same CLI."""

    seat: Seat
    brief: Brief
    access: Access
    cwd: Path
    budget: timedelta
    idle: timedelta
    schema: Json = None
    resume: SessionRef | None = None
    questions: bool = False
    max_steps: int = 0  # calls of tools in this turn; 0 = no cap


@dataclass(frozen=True, slots=True)
class Batch:
    """Commands run one after another by Beadmill itself. ``budget`` bounds each command that names no timeout."""

    specs: tuple[CommandSpec, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    stop_at_first_failure: bool = True
    budget: timedelta = timedelta(minutes=20)


@dataclass(frozen=True, slots=True)
class Service:
    """The server of a CLI that is one, shared by the sessions of one workspace with the same access. It ends when no
    session has used it for ``idle``."""

    agent: str
    access: Access
    cwd: Path
    idle: timedelta


@dataclass(frozen=True, slots=True)
class Policy:
    """What a box allows. ``read_only`` paths inside the workspace are bound read-only where the sandbox can; ``binds``
    are what of the outside may be written too: an adapter's ``auth_paths``; ``readable`` what may be read; ``hidden``
    what nothing of that may show. ``tree`` (None = the workspace's own) is all that is open of the work. ``hosts`` are what
    an allow-list names (``processes.hosts``), ``door`` the socket that leads to them: the runner makes it, None = none.
    ``image`` is whose programs a container shows, empty = this machine's."""

    network: Literal["on", "off", "allow-list"] = "on"
    read_only: tuple[Path, ...] = ()
    binds: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    access: Access = Access.WRITE
    tree: Path | None = None
    hosts: tuple[str, ...] = ()
    door: Path | None = None
    image: str = ""


@dataclass(frozen=True, slots=True)
class BoxSpec:
    """``workspace`` is ``<root>/<project>/<KEY>`` with tree, runtime, home and tmp inside."""

    sandbox: str
    workspace: Path
    policy: Policy = field(default_factory=Policy)


class EventKind(StrEnum):
    """The normalised events of every CLI. ``data`` keys are given behind each."""

    STARTED = "started"  # conversation?, model?, version?
    TEXT = "text"  # text (what the agent says)
    THINKING = "thinking"  # text
    TOOL = "tool"  # id, name, input (what it is about to do)
    TOOL_DONE = "tool_done"  # id, name, ok, output (tail), exit?
    USAGE = "usage"  # input, cached, output, reasoning, cost_usd?
    RETRY = "retry"  # attempt, message (the CLI retries its provider by itself)
    WARNING = "warning"  # message
    OUTPUT = "output"  # stream, text (raw lines nobody could parse; command output)
    COMMAND = "command"  # n, command (a batch starts its n-th command)
    COMMAND_DONE = "command_done"  # n, exit, seconds
    ENDED = "ended"  # type (the class name of the end)


@dataclass(frozen=True, slots=True)
class AgentEvent:
    at: datetime
    kind: EventKind
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Steer:
    text: str


@dataclass(frozen=True, slots=True)
class AnswerOrder:
    text: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Stops the working-time clock, never the process."""


@dataclass(frozen=True, slots=True)
class Release:
    pass


@dataclass(frozen=True, slots=True)
class Stop:
    reason: str = ""


Order: TypeAlias = Steer | AnswerOrder | Hold | Release | Stop
