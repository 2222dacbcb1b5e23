"""What a session shares with the user's home: sign-ins, and never what his own next session would run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from beadmill.agents import registry
from beadmill.agents.contract import Agent
from beadmill.processes.spec import Policy
from tests.workspaces.sandbox_place import Place

SIGN_INS = {
    "claude_acp": (".claude/.credentials.json",),
    "claude_code": (".claude/.credentials.json",),
    "codex": (".codex/auth.json", ".codex/auth.json.lock"),
    "codex_acp": (".codex/auth.json", ".codex/auth.json.lock"),
    "copilot": (),
    "gemini": (".gemini/oauth_creds.json",),
    "kilo": (".local/share/kilo/auth.json",),
    "kimi": (".kimi-code/credentials",),
    "opencode": (".local/share/opencode/auth.json",),
    "opencode_acp": (".local/share/opencode/auth.json",),
    "qwen": (".qwen/oauth_creds.json",),
    "scripted": (),
}
# Files that say what runs, of each CLI; the agent of the test tries to write them all.
RUN = (
    ".claude/settings.json", ".claude/hooks/x", ".claude.json", ".codex/config.toml", ".codex/hooks.json", ".codex/prompts/x.md",
    ".config/opencode/opencode.json", ".config/opencode/plugin/x.js", ".config/kilo/opencode.json", ".copilot/mcp-config.json",
    ".gemini/settings.json", ".kimi-code/config.toml", ".qwen/settings.json",
)  # fmt: skip


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A user who is signed in everywhere, and has configured half of it."""
    made = Place(Path(tempfile.mkdtemp(prefix="beadmill-homes-")))
    made.make()
    for name in {name for names in SIGN_INS.values() for name in names} | set(RUN[::2]):
        (made.home / name).parent.mkdir(parents=True, exist_ok=True)
        (made.home / name).write_text("mine")
    monkeypatch.setenv("HOME", str(made.home))
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    yield made
    shutil.rmtree(made.root)


def agents() -> Iterator[tuple[str, Agent]]:
    for name in registry.names({}):
        yield name, registry.load(name, {})


def test_every_agent_shares_its_sign_in_alone(place: Place) -> None:
    shared = {name: tuple(str(p.relative_to(place.home)) for p in agent.auth_paths) for name, agent in agents()}
    assert shared == SIGN_INS


@pytest.mark.sandbox
def test_no_agent_in_a_box_changes_what_the_users_own_session_runs(place: Place) -> None:
    before = {p: p.read_bytes() for p in place.home.rglob("*") if p.is_file()}
    lines = [f"mkdir -p $(dirname {place.home}/{name}); echo planted >{place.home}/{name}" for name in RUN]
    for _, agent in agents():
        binds, readable = agent.auth_paths, tuple(getattr(agent, "read_paths", ()))
        place.shell("; ".join(lines), policy=Policy(binds=binds, readable=readable, hidden=(place.data,)))
    assert {p: p.read_bytes() for p in place.home.rglob("*") if p.is_file()} == before
