"""Where Codex lives in a workspace: a CODEX_HOME of its own, with the user's sign-in linked and his provider copied.

Conversations, logs and settings of the user's own sessions are not there: an agent reads none of them and leaves nothing
that his next session would run (servers, hooks, a notifier). Standard library only.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from beadmill.domain.values import Json
from beadmill.processes import within

# What of the user's config.toml says which model answers and who pays for it.
TAKEN: Final = (
    "model", "model_provider", "model_providers", "model_reasoning_effort", "model_reasoning_summary",
    "model_reasoning_summary_format", "model_supports_reasoning_summaries", "model_verbosity", "model_context_window",
    "model_max_output_tokens", "model_auto_compact_token_limit", "review_model", "service_tier", "personality",
    "chatgpt_base_url", "openai_base_url", "oss_provider", "preferred_auth_method", "forced_login_method",
    "forced_chatgpt_workspace_id", "cli_auth_credentials_store",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodexHome:
    """``folder`` is the user's CODEX_HOME."""

    folder: Path

    @property
    def sign_in(self) -> Path:
        return self.folder / "auth.json"

    @property
    def shared(self) -> tuple[Path, ...]:
        """What sessions share with the user: his sign-in, and the lock under which Codex renews it."""
        return (self.sign_in, self.folder / "auth.json.lock") if self.sign_in.exists() else ()

    @property
    def config(self) -> Mapping[str, Json]:
        try:
            return tomllib.loads((self.folder / "config.toml").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    @property
    def provider(self) -> Mapping[str, Json]:
        """The configured one's entry; empty for Codex's own."""
        config = self.config
        known = config.get("model_providers")
        found = known.get(config.get("model_provider", "")) if isinstance(known, dict) else None
        return found if isinstance(found, dict) else {}

    def furnish(self, home: Path) -> Path:
        """The CODEX_HOME below a workspace's ``home``. Idempotent; agents of the workspace write there too."""
        made = within.make(home, ".codex")
        taken = {name: value for name, value in self.config.items() if name in TAKEN}
        within.write(home, ".codex/config.toml", toml(taken))
        if self.sign_in.exists():
            within.link(home, ".codex/auth.json", self.sign_in.resolve())
        return made


def toml(table: Mapping[str, Json]) -> str:
    """Tables within it become inline ones."""
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in table.items())


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Json) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, (str, bool)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)  # numbers, and the dates that TOML has and JSON has not
