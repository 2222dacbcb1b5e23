"""Where Claude Code's sign-in lies, and what of the user's own set-up a session takes over. Standard library only.

A session gets a configuration folder of its own in the workspace: conversations, memory and history of other work are
neither read nor written. Of the user's folder it sees the sign-in, which the CLI refreshes in place, and from the
user's settings what says who pays: the variables, the helper that prints a key, the model. Hooks, plugins, permissions
and MCP servers of the user stay out.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from beadmill.domain.values import Json
from beadmill.processes.folder import read_json

KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_PLACES: Final = (
    "CLAUDE_CONFIG_DIR", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
)  # fmt: skip
# A cloud's credentials are handed on only when the cloud is asked for.
_CLOUDS: Final[Mapping[str, tuple[str, ...]]] = {
    "CLAUDE_CODE_USE_BEDROCK": (
        "AWS_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL",
    ),
    "CLAUDE_CODE_USE_VERTEX": (
        "ANTHROPIC_VERTEX_PROJECT_ID", "ANTHROPIC_VERTEX_BASE_URL", "CLOUD_ML_REGION", "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    "CLAUDE_CODE_USE_FOUNDRY": (
        "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL",
    ),
}  # fmt: skip
_TAKEN: Final = ("apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "model")
_OURS: Final = ("HOME", "TMPDIR", "CLAUDE_CONFIG_DIR")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|HEADERS", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ClaudeHome:
    """``folder`` is the user's configuration folder, ``own`` the variables of the adapter's options."""

    folder: Path
    own: Mapping[str, str]

    @property
    def credentials(self) -> Path:
        return self.folder / ".credentials.json"

    @property
    def settings(self) -> Mapping[str, Json]:
        return _object(self.folder / "settings.json")

    @property
    def state(self) -> Mapping[str, Json]:
        """The CLI's own file: inside the folder, but for the default folder beside it."""
        inside = _object(self.folder / ".claude.json")
        return inside or (_object(self.folder.parent / ".claude.json") if self.folder.name == ".claude" else {})

    @property
    def taken(self) -> dict[str, Json]:
        """What of the user's settings a session is given."""
        return {name: value for name, value in self.settings.items() if name in _TAKEN}

    @property
    def wanted(self) -> tuple[str, ...]:
        """Variables of the daemon that a session is given: keys, where the provider is, and the cloud that was asked for."""
        told = {**os.environ, **self._settings_env(), **self.own}
        clouds = [name for switch, names in _CLOUDS.items() for name in (switch, *names) if told.get(switch)]
        return (*_PLACES, *KEYS, *clouds)

    @property
    def variables(self) -> dict[str, str]:
        """What says who pays: from the environment, over it the user's settings, over those the adapter's options."""
        told = {name: os.environ[name] for name in self.wanted if name in os.environ}
        told |= {**self._settings_env(), **self.own}
        key = self.state.get("primaryApiKey")  # a sign-in for the Console leaves a key
        if key and not any(told.get(name) for name in KEYS) and not self.credentials.exists():
            told["ANTHROPIC_API_KEY"] = str(key)
        return {name: value for name, value in told.items() if name not in _OURS}

    @property
    def signed_in(self) -> bool | None:
        """None = only a try would tell: a helper, a cloud, or the keychain of macOS."""
        told = self.variables
        if any(told.get(name) for name in KEYS) or self._token_is_good():
            return True
        if "apiKeyHelper" in self.settings or any(told.get(name) for name in _CLOUDS) or sys.platform == "darwin":
            return None
        return False

    def _token_is_good(self) -> bool:
        oauth = _object(self.credentials).get("claudeAiOauth")
        if not isinstance(oauth, dict) or not oauth.get("accessToken"):
            return False
        ends = oauth.get("expiresAt")
        return bool(oauth.get("refreshToken")) or not isinstance(ends, (int, float)) or ends / 1000 > time.time()

    def _settings_env(self) -> dict[str, str]:
        env = self.settings.get("env")
        return {str(k): str(v) for k, v in env.items()} if isinstance(env, dict) else {}


def secrets_among(names: Mapping[str, str]) -> list[str]:
    """The variables that commands of the model must not see."""
    return sorted(name for name in names if name.isidentifier() and (name in KEYS or _SECRET.search(name)))


def _object(path: Path) -> Mapping[str, Json]:
    try:
        data = read_json(path)
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
