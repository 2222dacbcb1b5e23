"""What the demo is made of: the sample repository, the ticket, the person's answers, the scripted model's scenario."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beadmill.git.run import Repo

HERE = Path(__file__).parent
SAMPLE = HERE / "sample"
SCENARIO = HERE / "scenario"
SHORT = "DEMO"
IDENTITY = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "Beadmill demo"), ("EMAIL", "demo@beadmill.invalid"))
}


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of the demo: ``checkout`` is the user's repository, ``origin`` its bare remote, ``home`` the data home."""

    root: Path

    @property
    def checkout(self) -> Path:
        return self.root / "units"

    @property
    def origin(self) -> Path:
        return self.root / "origin.git"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def scenario(self) -> Path:
        return self.root / "scenario.json"


def ticket() -> dict[str, Any]:
    """Title, description, acceptance and priority of the ticket."""
    fields: dict[str, Any] = _json(HERE / "ticket.json")
    return fields


def answers() -> dict[str, dict[str, Any]]:
    """What the person says, by question, in the form of the API: options, free text, or skipped with a reason."""
    said: dict[str, dict[str, Any]] = _json(HERE / "answers.json")
    return said


def scenario() -> dict[str, Any]:
    """The scenario as the player reads it: every file that a step names is put in its place."""
    whole: dict[str, Any] = _json(SCENARIO / "scenario.json")
    for reply in whole["replies"]:
        reply["steps"] = [_inlined(step) for step in reply["steps"]]
    return whole


def write_scenario(place: Place) -> None:
    place.scenario.parent.mkdir(parents=True, exist_ok=True)
    place.scenario.write_text(json.dumps(scenario(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _inlined(step: dict[str, Any]) -> dict[str, Any]:
    if "reply_file" in step:
        return {"reply": (SCENARIO / step["reply_file"]).read_text(encoding="utf-8")}
    if "write" in step:
        wanted = step["write"]
        return {"write": {"path": wanted["path"], "content": (SCENARIO / wanted["file"]).read_text(encoding="utf-8")}}
    return step


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


async def make_repository(place: Place) -> None:
    """The sample in a checkout on ``main`` whose ``origin`` is a bare repository beside it. Does nothing when it exists."""
    if place.checkout.exists():
        return
    making = place.root / "units.new"
    shutil.rmtree(making, ignore_errors=True)
    shutil.rmtree(place.origin, ignore_errors=True)
    shutil.copytree(SAMPLE, making, ignore=shutil.ignore_patterns("__pycache__"))
    (making / "dot-gitignore").rename(making / ".gitignore")
    await Repo(place.origin, None).git("init", "-q", "--bare", "-b", "main")
    await Repo(making / ".git", None).git("init", "-q", "-b", "main")
    repo = Repo(making / ".git", making)
    for name, value in (("user.name", "Beadmill demo"), ("user.email", "demo@beadmill.invalid")):
        await repo.git("config", name, value)
    await repo.git("add", "--all")
    await repo.git("commit", "-q", "-m", "Convert lengths and masses", env=IDENTITY)
    await repo.git("remote", "add", "origin", str(place.origin))
    await repo.git("push", "-q", "--set-upstream", "origin", "main")
    making.rename(place.checkout)  # last: a checkout that exists is whole
