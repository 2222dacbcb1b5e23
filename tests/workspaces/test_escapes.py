"""What a hostile agent can do from inside: nothing, in bubblewrap and in a container, as root and as a user; on the
host, what its banner says."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_for_tests import Cli

from beadmill.domain.values import Access
from beadmill.processes.spec import Policy
from tests.workspaces.attempts_names import ALLOWED, HARMLESS, NAMES, NETWORK
from tests.workspaces.sandbox_place import CANARY, Done, Place, users

BOXED = (
    pytest.param("bubblewrap", marks=pytest.mark.sandbox),
    pytest.param("container", marks=pytest.mark.container),
)
ATTEMPTS = Path(__file__).with_name("attempts.py")
ASK = """
import socket, sys
for target in sys.argv[1:]:
    with socket.create_connection(("127.0.0.1", 47420)) as way:
        way.sendall(f"CONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode())
        print(way.recv(4096).split()[1].decode())
"""

KNOCK = """
import sys, urllib.error, urllib.request
for method, path in (("GET", "tickets"), ("POST", "tickets"), ("GET", "config"), ("POST", "gates/1/answer")):
    asked = urllib.request.Request(f"{sys.argv[1]}/api/v1/{path}", method=method, headers={"Idempotency-Key": "k"})
    try:
        print(urllib.request.urlopen(asked).status)
    except urllib.error.HTTPError as refused:
        print(refused.code)
"""


@dataclass(frozen=True)
class Outside:
    """A place, a process of the same user outside of the box, and sockets that listen there."""

    place: Place
    pid: int
    facts: dict[str, object]
    sandbox: str

    def tries(self, names: tuple[str, ...], *, policy: Policy | None = None) -> dict[str, str]:
        facts = json.dumps({**self.facts, "names": names})
        done = self.python(ATTEMPTS.read_text(), facts, policy=policy)
        assert done.code == 0, done.err
        found: dict[str, str] = json.loads(done.out)
        return found

    def shell(self, script: str, **how: Any) -> Done:
        return self.place.shell(script, sandbox=self.sandbox, **how)

    def python(self, code: str, *arguments: str, **how: Any) -> Done:
        return self.place.python(code, *arguments, sandbox=self.sandbox, **how)


@pytest.fixture(params=users(), ids=lambda uid: "root" if uid == 0 else "user")
def uid(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=BOXED)
def outside(request: pytest.FixtureRequest, uid: int) -> Iterator[Outside]:
    root = Path(tempfile.mkdtemp(prefix="beadmill-escape-"))
    place = Place(root, uid)
    place.make()
    sleeper = subprocess.Popen([*place.as_user(), "sleep", "600"], env={"TOKEN": CANARY, "PATH": os.environ["PATH"]})
    with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{root.name}")
        abstract.listen()
        with socket.socket(socket.AF_UNIX) as file:
            file.bind(str(root / "socket"))
            (root / "socket").chmod(0o777)
            file.listen()
            yield Outside(place, sleeper.pid, facts(place, sleeper.pid, port.getsockname()[1]), request.param)
    sleeper.kill()
    sleeper.wait()
    place.end()
    shutil.rmtree(root)


def facts(place: Place, pid: int, port: int) -> dict[str, object]:
    return {
        "home": str(place.home), "workspace": str(place.workspace), "tree": str(place.tree), "pid": pid, "port": port,
        "common": str(place.common), "secrets": [str(s) for s in place.secrets], "socket": str(place.root / "socket"),
        "other": str(place.data / "workspaces/APP/APP-2/tree/other.txt"), "abstract": place.root.name,
    }  # fmt: skip


def test_nothing_that_a_hostile_agent_tries_works(outside: Outside) -> None:
    found = outside.tries(NAMES)
    assert {name: said for name, said in found.items() if said == "done"} == dict.fromkeys(ALLOWED, "done")


def test_nothing_was_planted_outside(outside: Outside) -> None:
    outside.tries(NAMES)
    place = outside.place
    planted = [p for p in place.root.rglob("*") if p.is_file() and "planted" in p.read_text(errors="replace")]
    assert set(planted) == {place.tree / "mine", place.workspace / "home" / "mine"}


def test_without_the_network_nothing_of_the_host_answers(outside: Outside) -> None:
    found = outside.tries(NETWORK, policy=Policy(network="off", hidden=(outside.place.data,)))
    assert [name for name, said in found.items() if said == "done"] == []


def test_an_allow_list_leads_to_the_listed_host_through_its_proxy_alone(outside: Outside) -> None:
    listed = Policy(network="allow-list", hosts=(f"127.0.0.1:{outside.facts['port']}",), hidden=(outside.place.data,))
    found = outside.tries(NETWORK, policy=listed)
    assert [name for name, said in found.items() if said == "done"] == []
    said = outside.python(ASK, f"127.0.0.1:{outside.facts['port']}", "127.0.0.1:1", "example.org:443", policy=listed)
    assert said.out.split() == ["200", "403", "403"]


@pytest.mark.parametrize("outside", ["host"], indirect=True)
def test_the_host_holds_nothing_of_this_back(outside: Outside) -> None:
    found = outside.tries(HARMLESS)
    assert {name: said for name, said in found.items() if said != "done"} == {}


def test_the_daemon_refuses_who_has_no_credential_and_its_own_cannot_be_read(outside: Outside, tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    url = cli("start", "--json").json["url"]
    knocked = outside.python(KNOCK, url)
    read = outside.shell(f"cat {cli.home}/daemon.json")
    assert cli("stop").code == 0
    assert (knocked.out.split(), read.code, read.out) == (["401"] * 4, 1, "")


@pytest.mark.parametrize("access", [Access.READ, Access.NONE])
def test_an_agent_that_may_not_write_cannot(outside: Outside, access: Access) -> None:
    place = outside.place
    tree = place.tree if access is Access.READ else place.workspace / "empty" / "1"
    policy = Policy(access=access, tree=tree, hidden=(place.data,))
    done = outside.shell(f"touch here; touch {place.tree}/there; ls {place.tree}", cwd=tree, policy=policy)
    assert (list(tree.glob("here")), (place.tree / "there").exists()) == ([], False)
    assert ("readme" in done.out) == (access is Access.READ)


def test_no_file_that_can_be_read_holds_a_secret(outside: Outside) -> None:
    """Everywhere but in the system's own programs, in what changed since the secrets are there: and in the environment
    of every process."""
    folders = f"/etc /home /root /run /tmp /var /srv /mnt /opt {outside.place.root}"
    since = f"-newerct @{outside.place.root.stat().st_ctime - 60:.0f}"
    files = f"find {folders} {since} -type f -exec grep -lsI {CANARY} {{}} + 2>/dev/null"
    assert outside.shell(f"{files}; grep -ls {CANARY} /proc/[0-9]*/environ").out == ""
    found = outside.shell(f"echo {CANARY} > there; {files}").out
    assert {*found.split()} == {f"{outside.place.tree}/there"}  # what is there is found


def test_killing_everybody_kills_nobody_outside(outside: Outside) -> None:
    outside.shell("kill -9 -1")
    assert Path(f"/proc/{outside.pid}/cmdline").read_bytes() == b"sleep\x00600\x00"


def test_programs_gain_no_rights(outside: Outside) -> None:
    done = outside.shell("grep -E '^(Cap|NoNewPrivs)' /proc/self/status")
    told = dict(line.split(":\t") for line in done.out.splitlines())
    assert told == {**dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16), "NoNewPrivs": "1"}


def test_git_reads_and_never_writes(outside: Outside) -> None:
    before = {p: p.read_bytes() for p in outside.place.common.rglob("*") if p.is_file()}
    reads, writes = "git log --oneline | wc -l; git status --porcelain", "git config core.fsmonitor ./evil; git add ."
    done = outside.shell(f"touch new; {reads}; {writes}")
    assert (done.out, done.code != 0, done.err.count("Read-only file system")) == ("1\n?? new\n", True, 2)
    assert {p: p.read_bytes() for p in outside.place.common.rglob("*") if p.is_file()} == before
