"""What a start meets in the home: a read-only disk, a lock of somebody else, what a dead daemon left."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from cli_for_tests import Cli

from beadmill.web import record


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Cli]:
    """A home on a file system that cannot be written; root is not stopped by permissions."""
    cli = Cli(tmp_path)
    assert cli("start").code == 0
    assert cli("stop").code == 0
    bound = ["mount", "--bind", "-o", "ro", str(cli.home), str(cli.home)]
    mounted = subprocess.run(bound, capture_output=True, check=False).returncode == 0
    if not mounted:
        cli.home.chmod(0o500)
    yield cli
    if mounted:
        subprocess.run(["umount", "-l", str(cli.home)], check=True)
    cli.home.chmod(0o700)


def test_c86_a_home_that_cannot_be_written_is_a_clear_error_and_nothing_is_half_written(read_only: Cli) -> None:
    if os.geteuid() and os.access(read_only.home, os.W_OK):
        pytest.skip("this user owns the home and may write it whatever its mode")
    before = sorted((p.name, p.stat().st_mtime_ns) for p in read_only.home.rglob("*"))
    said = [read_only("start", "--foreground"), read_only("ticket", "list", "--json")]
    assert [one.code for one in said] == [1, 1]
    assert said[0].err.splitlines()[0].startswith(f"error: the home {read_only.home} cannot be written: ")
    assert said[1].json["error"]["code"] == "HOME_NOT_WRITABLE"
    assert sorted((p.name, p.stat().st_mtime_ns) for p in read_only.home.rglob("*")) == before


def test_a_database_of_a_newer_release_stops_the_start_and_says_both_ways_on(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    assert (cli("start").code, cli("stop").code) == (0, 0)
    with closing(sqlite3.connect(cli.home / "beadmill.db")) as conn:
        conn.execute("update alembic_version set version_num = '9999'")
        conn.commit()
    said = cli("start", "--foreground")
    lines = said.err.splitlines()
    assert (said.code, [line.partition(":")[0] for line in lines]) == (1, ["error", "kept", "next"])
    assert "schema 9999" in lines[0]
    assert lines[2].startswith("next: install that release again; or, to go back for good")


def test_what_a_dead_daemon_left_does_not_stop_the_next_one(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    first = cli("start", "--json").json
    dead = record.read(cli.home)
    assert dead is not None
    os.kill(first["pid"], 9)
    (cli.home / ".daemon.json.new").write_text("{")
    again = cli("start", "--json").json
    assert (again["pid"] != first["pid"], record.held(cli.home)) == (True, True)
    assert not (cli.home / ".daemon.json.new").exists()
    cli("stop")


def test_a_record_whose_pid_is_now_somebody_elses_is_not_believed_and_nobody_is_signalled(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli("start")
    mine = record.read(cli.home)
    cli("stop")
    assert mine is not None
    foreign = {**{name: getattr(mine, name) for name in mine.__slots__}, "pid": os.getpid()}
    (cli.home / "daemon.json").write_text(json.dumps(foreign))
    assert cli("stop").out == "No daemon runs.\n"
    assert cli("status").code == 3


def test_the_usual_port_that_somebody_took_meanwhile_gives_way_to_a_free_one(tmp_path: Path) -> None:
    cli = Cli(tmp_path, usual_port=True)
    with ExitStack() as stack:
        with suppress(OSError):  # a daemon of whoever runs the tests has it already: all the better
            stack.enter_context(socket.create_server(("127.0.0.1", 7420)))
        url = cli("start", "--json").json["url"]
    cli("stop")
    assert url.rpartition(":")[2] != "7420"


def test_a_restart_whose_own_port_was_taken_says_so_and_the_next_start_works(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli("start")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = cli("restart", "--port", str(taken.getsockname()[1]))
    assert (said.code, "Address already in use" in said.err) == (1, True)
    assert (cli("start").code, cli("stop").code) == (0, 0)
