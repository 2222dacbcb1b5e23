"""Canaries planted wherever a secret may lie; after a whole run no byte that Beadmill wrote holds one."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_for_tests import Cli

from tests.journeys import small_world
from tests.journeys.small_world import CODING, RUN_TEST, STATUS, Small, tagged

CANARIES: Mapping[str, str] = {  # built, so that no scanner takes this file for a leak
    "OPENAI_API_KEY": "sk-proj-" + "canary1" * 5,
    "AWS_SECRET_ACCESS_KEY": "canary2/" + "Wq+" * 10,
    "GITHUB_TOKEN": "ghp_" + "canary3" * 5 + "A",
    "BEADMILL_ADMIN_TOKEN": "canary4-" + "ours" * 4,
    "DATABASE_URL": "postgresql://app:canary5-" + "pw" * 6 + "@127.0.0.1/app",
    "MAIL_PASSWORD_FILE_KEY": "canary6-" + "mail" * 4,
}
REMOTE = "canary7-" + "git" * 4  # the password in the address of origin
UNKNOWN = "AKIA" + "CANARY8X" * 2  # in no environment: known by its looks alone
NEEDLES = ("canary1canary1", "canary2/Wq+", "canary3canary3", "canary4-ours", "canary5-pw", "canary6-mail", REMOTE)


@dataclass(frozen=True, slots=True)
class Leaky(Small):
    """Its daemon's environment holds the canaries."""

    @property
    def cli(self) -> Cli:
        return Cli(self.root, tuple(CANARIES.items()))

    @property
    def seen(self) -> Path:
        """The environment of agent and command, as they saw it; outside of everything that is searched."""
        return self.root / "seen.txt"

    def leak(self) -> None:
        """Somewhere on the disk lies a file with all of it, which agent and tests print."""
        everything = [*CANARIES.values(), REMOTE, base64.b64encode(CANARIES["GITHUB_TOKEN"].encode()).decode()]
        (self.root / "leak.txt").write_text("\n".join([*everything, UNKNOWN]) + "\n")


def coding(small: Leaky) -> dict[str, Any]:
    whole: dict[str, Any] = CODING
    steps = whole["steps"][:-1]
    look = f"env >> '{small.seen}'; cat '{small.root}/leak.txt'; cat '{small.root}/leak.txt' >&2"
    said = {**STATUS, "interfaces": [f"login with {CANARIES['GITHUB_TOKEN']}"]}
    spoken = {"say": (small.root / "leak.txt").read_text()}
    return {**whole, "steps": [{"shell": look}, spoken, *steps, {"reply": tagged("BEAD_STATUS", said)}]}


def plan(small: Leaky) -> list[dict[str, Any]]:
    print_all = {"mode": "shell", "script": f"env >> '{small.seen}'; cat '{small.root}/leak.txt'"}
    more = {"testCommands": [RUN_TEST, print_all]}
    draft = small_world.says("beads_draft", {"beads": [{**small_world.BEAD, **more}]})
    return [draft, small_world.says("beads_expand", {**small_world.EXPANDED, **more})]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leaky]:
    """One whole ticket, merged."""
    made = Leaky(tmp_path_factory.mktemp("leaky"))
    made.make()
    address = f"https://bot:{REMOTE}@git.invalid/x.git"
    made.git("config", f"url.{made.origin}.insteadOf", address)
    made.git("remote", "set-url", "origin", address)
    made.leak()
    made.script(coding(made), *plan(made))
    assert made.cli("project", "add", str(made.checkout), "--short", "GRUE").code == 0
    gates = ("interview", "prd", "beads", "setup")
    off = ["--set", "sandbox=host"] + [part for name in gates for part in ("--set", f"gates.{name}=off")]
    told = f"Say goodbye with {CANARIES['OPENAI_API_KEY']}"
    key = made.ticket("--set", "council.interview_questions=0", *off, "--description", told)
    merge = made.asked(key)
    note = f"merged with {CANARIES['MAIL_PASSWORD_FILE_KEY']}"
    assert (merge["kind"], made.cli("gate", "approve", key, "--note", note).code) == ("merge", 0), merge
    assert made.cli("ticket", "watch", key).code == 0
    yield made
    made.cli("stop")


def holds(data: bytes) -> list[str]:
    encoded = base64.b64encode(CANARIES["GITHUB_TOKEN"].encode())[:24].decode()
    return [needle for needle in (*NEEDLES, encoded) if needle.encode() in data]


@pytest.mark.deliver
@pytest.mark.timeout(400)
def test_c82_no_file_of_the_data_home_holds_a_secret(small: Leaky) -> None:
    files = [path for path in small.cli.home.rglob("*") if path.is_file()]
    assert {str(path.relative_to(small.cli.home)): found for path in files if (found := holds(path.read_bytes()))} == {}
    kinds = {path.suffix for path in files}
    assert {".db", ".jsonl", ".log", ".json"} <= kinds


@pytest.mark.deliver
def test_c82_what_was_hidden_would_have_been_there(small: Leaky) -> None:
    events = b"".join(path.read_bytes() for path in small.cli.home.glob("sessions/*/events.jsonl"))
    assert events.count(b"[redacted]") >= 2 * len(CANARIES)
    assert UNKNOWN.encode() not in events


@pytest.mark.deliver
def test_no_commit_ref_or_object_holds_a_secret(small: Leaky) -> None:
    for place in (small.origin, small.checkout):
        argv = ["git", "-C", str(place), "cat-file", "--batch-all-objects", "--batch", "--unordered"]
        assert holds(subprocess.run(argv, check=True, capture_output=True).stdout) == []
        assert holds(small.git("for-each-ref", at=place).encode()) == []


@pytest.mark.deliver
def test_no_secret_is_in_the_environment_of_agents_and_commands(small: Leaky) -> None:
    seen = small.seen.read_bytes()
    assert (seen.count(b"BEADMILL_SESSION="), holds(seen)) == (2, [])
    assert [name for name in CANARIES if f"{name}=".encode() in seen] == []


@pytest.mark.deliver
def test_no_answer_of_the_command_line_holds_a_secret(small: Leaky) -> None:
    for args in (
        ("ticket", "show", "GRUE-1", "--json"),
        ("run", "show", "GRUE-1", "--json"),
        ("project", "show", "GRUE"),
    ):
        said = small.cli(*args)
        assert (said.code, holds((said.out + said.err).encode())) == (0, [])
