"""The sandbox contract, over all implementations, and what each says about itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from beadmill.domain.values import Access
from beadmill.errors import Unavailable
from beadmill.processes.spec import Policy
from beadmill.workspaces.sandboxes import _engine, bubblewrap, choice
from tests.workspaces.sandbox_place import SRC, Place

BOXED = pytest.param("bubblewrap", marks=pytest.mark.sandbox)
CONTAINED = pytest.param("container", marks=pytest.mark.container)
BOTH = pytest.mark.parametrize("sandbox", ["host", BOXED, CONTAINED])
REAL = pytest.mark.parametrize("sandbox", [BOXED, CONTAINED])
# What both have of one list of mounts: of containers these show more of the same.
LISTED = pytest.mark.parametrize(
    "sandbox", [BOXED, pytest.param("container", marks=[pytest.mark.container, pytest.mark.long])]
)


@pytest.fixture
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="beadmill-sandbox-") as root:
        made = Place(Path(root))
        made.make()
        yield made


@BOTH
async def test_its_probe_says_that_it_works_here(sandbox: str) -> None:
    health = await choice.load(sandbox).probe()
    assert (health.ok, bool(health.message), "isolation" in health.detail) == (True, True, True)


@BOTH
@pytest.mark.parametrize("code", [0, 7])
def test_the_exit_code_is_the_command_s(place: Place, sandbox: str, code: int) -> None:
    done = place.shell(f"echo out; echo err >&2; exit {code}", sandbox=sandbox)
    assert (done.code, done.out, done.err) == (code, "out\n", "err\n")


@BOTH
def test_a_command_sees_its_environment_its_folder_and_its_arguments(place: Place, sandbox: str) -> None:
    done = place.run(
        ["/bin/sh", "-c", 'echo "$X|$HOME|$PWD|$1"', "sh", "a b"], sandbox=sandbox, env={"X": "1 2"}, cwd=place.tree
    )
    assert done.out == f"1 2|{place.workspace}/home|{place.tree}|a b\n"


@BOTH
def test_nothing_of_the_caller_s_environment_comes_along(place: Place, sandbox: str) -> None:
    done = place.shell("env", sandbox=sandbox)
    assert {line.partition("=")[0] for line in done.out.splitlines()} - {"_", "PWD", "SHLVL"} == {
        "PATH",
        "HOME",
        "TMPDIR",
    }


@BOTH
def test_what_is_written_in_the_workspace_is_there_afterwards(place: Place, sandbox: str) -> None:
    place.shell("echo t >made; echo h >$HOME/made; echo m >$TMPDIR/made", sandbox=sandbox)
    assert [(f / "made").read_text() for f in (place.tree, place.workspace / "home", place.workspace / "tmp")] == [
        "t\n",
        "h\n",
        "m\n",
    ]


@BOTH
def test_git_shows_the_work_to_an_agent(place: Place, sandbox: str) -> None:
    done = place.shell("touch new; git status --porcelain; git log --format=%s; git diff --stat", sandbox=sandbox)
    assert (done.out, done.err) == ("?? new\nfirst\n", "")


@BOTH
async def test_a_workspace_that_is_gone_is_named(tmp_path: Path, sandbox: str) -> None:
    with pytest.raises(Unavailable) as caught:
        await choice.load(sandbox).open(tmp_path / "gone", Policy())
    assert caught.value.code == "WORKSPACE_GONE"


@BOTH
@pytest.mark.parametrize("network", ["off", "allow-list"])
async def test_a_network_policy_is_held_or_refused(
    place: Place, sandbox: str, *, network: Literal["off", "allow-list"]
) -> None:
    made = choice.load(sandbox)
    if network in made.networks:
        await (await made.open(place.workspace, Policy(network=network))).close()
        return
    with pytest.raises(Unavailable) as caught:
        await made.open(place.workspace, Policy(network=network))
    assert caught.value.code == "SANDBOX_POLICY"


@BOTH
async def test_closing_twice_is_fine(place: Place, sandbox: str) -> None:
    box = await choice.load(sandbox).open(place.workspace, Policy())
    await box.close()
    await box.close()


@BOTH
def test_the_runner_can_load_it_with_the_standard_library_alone(sandbox: str) -> None:
    module = choice.PATHS[sandbox].partition(":")[0]
    code = f"import sys; sys.path.insert(0, {str(SRC)!r}); import {module}"
    assert subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False).returncode == 0


# --- what isolates


RENEW = """
import os, sys
auth = sys.argv[1]
with open(auth + ".new", "w") as fresh:
    fresh.write("renewed")
try:
    os.rename(auth + ".new", auth)
except OSError as error:  # what CLIs do then
    print(error.strerror)
    open(auth, "w").write("renewed")
print(*sorted(os.listdir(os.path.dirname(auth))))
"""


@REAL
def test_a_sign_in_can_be_renewed_and_what_lies_beside_it_is_not_there(place: Place, sandbox: str) -> None:
    mine = place.home / ".cli"
    mine.mkdir()
    (mine / "auth.json").write_text("old")
    (mine / "config.toml").write_text("mine")
    binds = Policy(binds=(mine / "auth.json", mine / "none"))
    done = place.python(RENEW, str(mine / "auth.json"), policy=binds, sandbox=sandbox)
    assert done.out.splitlines() == ["Device or resource busy", "auth.json auth.json.new"]
    assert {p.name: p.read_text() for p in mine.iterdir()} == {"auth.json": "renewed", "config.toml": "mine"}


@LISTED
def test_two_files_of_one_folder_are_both_there_and_its_neighbours_are_not(place: Place, sandbox: str) -> None:
    for name in ("a", "b", "c"):
        (place.home / name).write_text(name)
    done = place.shell(
        f"ls -A {place.home}", policy=Policy(binds=(place.home / "a", place.home / "b")), sandbox=sandbox
    )
    assert done.out.split() == ["a", "b"]


@LISTED
def test_a_readable_folder_can_be_read_and_not_written(place: Place, sandbox: str) -> None:
    more = place.root / "more"
    more.mkdir()
    (more / "data").write_text("42\n")
    done = place.shell(f"cat {more}/data; echo x >{more}/data", policy=Policy(readable=(more,)), sandbox=sandbox)
    assert (done.out, done.code, (more / "data").read_text()) == ("42\n", 2, "42\n")


@REAL
@pytest.mark.parametrize("name", ["home", "home/.ssh", "home/.config", "", "data"])
async def test_a_folder_that_would_show_secrets_is_refused(
    place: Place, sandbox: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(place.home))
    policy = Policy(readable=(place.root / name,), hidden=(place.data,))
    with pytest.raises(Unavailable) as caught:
        await choice.load(sandbox).open(place.workspace, policy)
    assert caught.value.code == "SANDBOX_POLICY"


@REAL
async def test_a_git_file_that_became_a_link_is_refused(place: Place, sandbox: str) -> None:
    (place.tree / ".git").unlink()
    (place.tree / ".git").symlink_to(place.home / "notes.txt")
    with pytest.raises(Unavailable) as caught:
        await choice.load(sandbox).open(place.workspace, Policy())
    assert caught.value.code == "SANDBOX_POLICY"


@REAL
async def test_a_tree_outside_of_the_workspace_is_refused(place: Place, sandbox: str) -> None:
    with pytest.raises(Unavailable):
        await choice.load(sandbox).open(place.workspace, Policy(tree=place.home))


@LISTED
def test_the_git_folder_is_found_by_our_record_and_never_by_the_tree(place: Place, sandbox: str) -> None:
    other = place.home / "private"
    other.mkdir()
    (other / "HEAD").write_text("x")
    (place.tree / ".git").write_text(f"gitdir: {other}\n")
    assert place.shell(f"ls {other}", sandbox=sandbox).code == 2


@LISTED
def test_a_program_of_a_version_manager_runs_and_the_rest_of_the_home_stays_hidden(
    place: Place, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = place.home / ".nvm" / "versions" / "node" / "v1"
    for folder in ("bin", "lib/node_modules/tool/bin"):
        (prefix / folder).mkdir(parents=True)
    script = prefix / "lib/node_modules/tool/bin/tool.js"
    script.write_text('#!/bin/sh\necho "I am $0"\n')
    script.chmod(0o755)
    (place.home / "bin").mkdir()
    (prefix / "bin" / "tool").symlink_to("../lib/node_modules/tool/bin/tool.js")
    (place.home / "bin" / "tool").symlink_to(prefix / "bin" / "tool")
    monkeypatch.setenv("PATH", f"{place.home}/bin{os.pathsep}{os.environ['PATH']}")
    done = place.shell(f"tool; ls -A {place.home}", sandbox=sandbox)
    assert done.out == f"I am {place.home}/bin/tool\n.nvm\nbin\n"


@LISTED
def test_a_link_that_an_agent_left_opens_nothing(place: Place, sandbox: str) -> None:
    (place.tree / "bin").mkdir()
    (place.tree / "bin" / "python").symlink_to(place.home / ".ssh" / "id_ed25519")
    done = place.shell("cat bin/python", env={"PATH": f"{place.tree}/bin:{os.environ['PATH']}"}, sandbox=sandbox)
    assert (done.out, done.code) == ("", 1)


@REAL
def test_paths_that_lead_through_links_work(place: Place, sandbox: str) -> None:
    (place.root / "short").symlink_to(place.data)
    linked = Place(place.root)
    workspace = place.root / "short" / "workspaces" / "APP" / "APP-1"
    done = linked.shell(
        "pwd; cat readme", cwd=workspace / "tree", policy=Policy(tree=workspace / "tree"), sandbox=sandbox
    )
    assert (done.code, done.out.splitlines()[-1]) == (0, "hello")


@REAL
def test_an_allow_list_adds_the_names_of_its_proxy_to_the_environment_and_takes_others_away(
    place: Place, sandbox: str
) -> None:
    """All else is as it was: the Python that opens the door leaves no locale of its own."""
    others = {"ALL_PROXY": "http://other:1", "https_proxy": "http://other:1", "no_proxy": "*", "X": "1=2"}
    listed = Policy(network="allow-list", hosts=("127.0.0.1:80", "example.org"))
    done = place.shell("env", policy=listed, env=others, sandbox=sandbox)
    found = dict(line.split("=", 1) for line in done.out.splitlines())
    for name in ("_", "PWD", "SHLVL", "PATH", "HOME", "TMPDIR"):
        found.pop(name, None)
    assert found == {
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:47420"),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,::1"),
        "NODE_USE_ENV_PROXY": "1", "X": "1=2",
    }  # fmt: skip


@LISTED
def test_an_agent_reads_a_repository_that_borrows_its_objects(place: Place, sandbox: str) -> None:
    borrowed = place.root / "borrowed"
    (borrowed / "info").mkdir(parents=True)
    (place.common / "objects" / "info").mkdir(exist_ok=True)
    (place.common / "objects" / "info" / "alternates").write_text(f"{borrowed}\n")
    (borrowed / "here").write_text(json.dumps("yes"))
    assert place.shell(f"cat {borrowed}/here", policy=Policy(access=Access.READ), sandbox=sandbox).out == '"yes"'


# --- which one


@pytest.mark.sandbox
async def test_auto_is_bubblewrap_where_it_works() -> None:
    assert ((await choice.choose("auto")).name, (await choice.choose("auto")).why) == ("bubblewrap", "")


async def test_auto_is_the_host_where_both_are_missing_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = await choice.choose("auto")
    assert chosen.name == "host"
    assert chosen.why == (
        f"no bubblewrap: bwrap was not found on the PATH; {bubblewrap.INSTALL}; "
        f"no container: neither podman nor docker was found on the PATH; {_engine.INSTALL}"
    )


async def test_a_sandbox_that_was_named_is_never_swapped_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable) as caught:
        await choice.choose("bubblewrap")
    assert caught.value.code == "SANDBOX_MISSING"


@pytest.mark.parametrize(
    ("says", "hint"), [("bwrap: No permissions to create new namespace", "sysctls"), ("bwrap: odd", "cannot build")]
)
async def test_a_bubblewrap_that_fails_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, hint: str
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit\necho "{says}" >&2\nexit 1\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("BEADMILL_TRUSTED_EXECUTABLE_DIRS", str(tmp_path))
    health = await choice.load("bubblewrap").probe()
    assert (health.ok, hint in health.message, says in health.message) == (False, True, True)


async def test_a_bubblewrap_that_others_may_change_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bwrap").chmod(0o777)
    monkeypatch.setenv("PATH", str(tmp_path))
    health = await choice.load("bubblewrap").probe()
    assert (health.ok, "everybody may write" in health.message) == (False, True)


async def test_the_network_cannot_be_off_without_a_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable) as caught:
        await choice.choose("auto", "off")
    assert caught.value.code == "SANDBOX_POLICY"
