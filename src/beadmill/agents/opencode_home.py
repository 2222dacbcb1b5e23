"""Where OpenCode lives in a workspace, and what it may do there: its HOME, configuration, environment and rules.

Standard library only. The user's own configuration is named to it (OPENCODE_CONFIG) and his sign-in linked, so a refreshed
login reaches his file; everything else (database, logs, caches) stays in the workspace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from beadmill.domain.values import Access, Json
from beadmill.errors import Unavailable
from beadmill.processes import within

LEASH: Final = Path(__file__).with_name("opencode_leash.js")
NAMES: Final = ("opencode.json", "opencode.jsonc")
PASSWORD: Final = "OPENCODE_SERVER_PASSWORD"  # noqa: S105 - the name of its variable
_FLAGS: Final = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
    "OPENCODE_ENABLE_QUESTION_TOOL": "1",
}
STRUCTURED: Final = "StructuredOutput"  # the tool by which a schema is asked for
_LOOK: Final = ("read", "glob", "grep", "list", "todowrite", "todoread")
_WORK: Final = (*_LOOK, "edit", "bash")
ALLOWED: Final[Mapping[Access, Sequence[str]]] = {
    Access.NONE: (),
    Access.READ: _LOOK,
    Access.WRITE: _WORK,
    Access.ONLINE: (*_WORK, "webfetch", "websearch"),
}
_CODE = re.compile(r'"plugins?"\s*:\s*[\[{]')


@dataclass(frozen=True, slots=True)
class Home:
    """``root`` is OpenCode's HOME, shared by the servers of one workspace, so any of them can resume a conversation."""

    root: Path

    @classmethod
    def of(cls, workspace: Path) -> Home:
        return cls(workspace / "home" / "opencode")

    @property
    def marks(self) -> Path:
        return self.root / "marks"

    @property
    def nothing(self) -> Path:
        """Where an agent without access is: one folder for all, since a server keeps 100 MB for each it has seen."""
        return self.root / "nothing"

    def furnish(self, auth: Path) -> None:
        """Idempotent; two servers may do it at once. Agents of the workspace write here too."""
        home, config = self.root.parent, f"{self.root.name}/.config/opencode"
        for name in (self.marks.name, ".local/share/opencode"):
            within.make(home, f"{self.root.name}/{name}")
        within.make(home, f"{config}/node_modules")
        within.make(home, f"{self.root.name}/{self.nothing.name}", mode=0o500)
        # Without these OpenCode asks the registry for the types of its plugin interface, in every new HOME.
        within.write(home, f"{config}/package.json", json.dumps({"dependencies": {}}))
        locked = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
        within.write(home, f"{config}/package-lock.json", json.dumps(locked))
        if auth.exists():
            within.link(home, f"{self.root.name}/.local/share/opencode/auth.json", auth)
        within.write(home, f"{self.root.name}/{LEASH.name}", LEASH.read_text(encoding="utf-8"))

    def mark(self, conversation: str, marks: Mapping[str, str]) -> None:
        """From now on its tools may run, and carry these."""
        within.write(self.root.parent, self._mark(conversation), json.dumps(marks))

    def unmark(self, conversation: str) -> None:
        within.remove(self.root.parent, self._mark(conversation))

    def _mark(self, conversation: str) -> str:
        return f"{self.root.name}/{self.marks.name}/{re.sub(r'[^A-Za-z0-9_-]', '', conversation)}.json"

    def environment(self, *, password: str, config: Json, hidden: Sequence[str], models: Path) -> dict[str, str]:
        """``hidden`` are variables that commands of the model do not see."""
        return {
            **_FLAGS,
            "HOME": str(self.root),
            PASSWORD: password,
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "BEADMILL_MARKS": str(self.marks),
            "BEADMILL_HIDDEN": ",".join((PASSWORD, *hidden)),
            **({"OPENCODE_MODELS_PATH": str(models)} if models.is_file() else {}),
        }

    def config(self, access: Access, tree: Path) -> Json:
        """What no configuration of the user may change."""
        return {
            "autoupdate": False,
            "share": "disabled",
            "snapshot": False,
            "lsp": False,
            "formatter": False,
            "plugin": [(self.root / LEASH.name).as_uri()],
            "instructions": [str(tree / "AGENTS.md")],
            "permission": {"*": "deny", **dict.fromkeys((*ALLOWED[access], STRUCTURED), "allow")},
        }


def rules(access: Access, *, questions: bool) -> list[Json]:
    """A session's own rules, which come last and so win over every configuration."""
    allowed = (*ALLOWED[access], STRUCTURED, *(("question",) if questions else ()))
    deny = {"permission": "*", "pattern": "*", "action": "deny"}
    return [deny, *({"permission": name, "pattern": "*", "action": "allow"} for name in allowed)]


# --- what a repository may not do
def code_of_project(folder: Path) -> Path | None:
    """What OpenCode would run of the repository unasked: 1.18 loads plugins from here up to the repository's root,
    whatever its own switches for project configuration and plugins say."""
    for place in (folder, *folder.parents):
        inside = place / ".opencode"
        plugins = [*inside.glob("plugin/*.[jt]s"), *inside.glob("plugins/*.[jt]s")]
        if plugins:
            return min(plugins)
        for config in (base / name for base in (place, inside) for name in NAMES):
            if config.is_file() and _CODE.search(config.read_text(encoding="utf-8", errors="replace")):
                return config
        if (place / ".git").exists():
            return None
    return None


def require_no_code(folder: Path, *, agent: str = "opencode") -> None:
    """Raises Unavailable."""
    found = code_of_project(folder)
    if found is not None:
        raise Unavailable(
            f"{agent} is not started: it would run {found}, which belongs to the repository",
            code="AGENT_PROJECT_CODE",
            next=f"read it; when you trust it, set trust_project = true for the agent {agent}",
        )


# --- the user's own files
def read_jsonc(path: Path) -> Mapping[str, Json]:
    """JSON with comments and trailing commas. Empty when it is not there or nobody can read it."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return {}
    plain = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or "", text, flags=re.DOTALL)
    try:
        data = json.loads(re.sub(r",(\s*[}\]])", r"\1", plain))
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def config_file(folder: Path) -> Path | None:
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)
