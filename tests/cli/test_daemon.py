from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from cli_for_tests import Cli

from beadmill.web.record import held, read


def test_a_command_starts_the_daemon_and_says_so(tmp_path: Path) -> None:
    cli = Cli(tmp_path, cold=True)
    first, second = cli("project", "list"), cli("project", "list")
    stopped = cli("stop")
    assert (first.code, first.err.splitlines()[0], second.err) == (0, "Starting the daemon …", "")
    assert (stopped.code, stopped.out, (cli.home / "daemon.json").exists()) == (0, "Stopped.\n", False)


def test_the_home_and_the_token_are_for_their_owner_only(cli: Cli) -> None:
    cli("start")
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (cli.home, cli.home / "daemon.json", cli.home / "beadmill.db")]
    assert modes == [0o700, 0o600, 0o600]


def test_a_second_daemon_says_who_holds_the_home_and_exits_4(cli: Cli) -> None:
    cli("start")
    record = read(cli.home)
    assert record is not None
    second = cli("start", "--foreground")
    assert second.code == 4
    assert f"process {record.pid} on {record.url}" in second.err.splitlines()[0]
    assert read(cli.home) == record


def test_a_taken_port_that_was_asked_for_is_a_clear_error(tmp_path: Path) -> None:
    cli = Cli(tmp_path, cold=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = cli("start", "--foreground", "--port", str(port))
    assert (said.code, said.err.splitlines()[0]) == (
        1,
        f"error: port {port} on 127.0.0.1 cannot be used: Address already in use",
    )


def test_a_daemon_that_does_not_come_up_shows_its_log(tmp_path: Path) -> None:
    cli = Cli(tmp_path, extra=(("BEADMILL_PORT", "not a number"),))
    said = cli("ticket", "list")
    assert (said.code, f"next: its log is {cli.home}/logs/daemon.log" in said.err) == (1, True)
    assert "error: the settings cannot be used: port: Input should be a valid integer" in said.err


def test_status_of_a_home_without_a_daemon_is_not_found(tmp_path: Path) -> None:
    said = Cli(tmp_path, cold=True)("status", "--json")
    assert (said.code, said.json["error"]["code"]) == (3, "DAEMON_NOT_RUNNING")


def test_the_daemon_stops_with_streams_open_and_stop_waits_until_it_has(tmp_path: Path) -> None:
    cli = Cli(tmp_path, cold=True)
    cli("start")
    record = read(cli.home)
    assert record is not None
    with ExitStack() as stack:
        answers = [stack.enter_context(open_stream(record.port, record.token)) for _ in range(20)]
        os.kill(record.pid, signal.SIGTERM)
        rest = [answer.read() for answer in answers]
    stopped = cli("stop")
    assert (len(rest), stopped.code, held(cli.home)) == (20, 0, False)
    assert "Traceback" not in (cli.home / "logs" / "daemon.log").read_text()


@contextmanager
def open_stream(port: int, token: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    connection.request("GET", "/api/v1/events?topics=board", headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200
    with answer, closing(connection):
        yield answer


def test_a_killed_daemon_is_replaced_by_the_next_command(tmp_path: Path) -> None:
    cli = Cli(tmp_path, cold=True)
    cli("start")
    record = read(cli.home)
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    said = cli("start", "--json")
    assert (said.code, said.json["pid"] != record.pid) == (0, True)
    cli("stop")


def test_open_gives_a_link_with_the_token_in_the_fragment(cli: Cli) -> None:
    link = cli("open", "--json").json
    address, _, token = link["url"].partition("#")
    record = read(cli.home)
    assert record is not None
    assert (address, len(token) > 30, link["opened"]) == (f"{record.url}/sign-in", True, False)


def test_logs_show_the_last_lines(cli: Cli) -> None:
    cli("start")
    said = cli("logs", "-n", "1000")
    assert any("serving http://127.0.0.1:" in line for line in said.out.splitlines())


def test_logs_follow_through_a_rotation(cli: Cli) -> None:
    cli("start")
    log = cli.home / "logs" / "daemon.log"
    with cli.begin("logs", "-f", "-n", "1") as following:
        assert following.stdout is not None
        following.stdout.readline()
        with log.open("a") as old:
            old.write("in the old one\n")
        assert following.stdout.readline() == "in the old one\n"
        log.rename(log.with_suffix(".log.1"))
        log.write_text("in the new one\n")
        heard = following.stdout.readline()
        following.send_signal(signal.SIGINT)
        assert (heard, following.wait(10)) == ("in the new one\n", 0)


def test_json_errors_are_the_envelope(cli: Cli) -> None:
    said = cli("ticket", "show", "API-99", "--json")
    assert (said.code, json.loads(said.out)["error"]["next"]) == (3, "beadmill ticket list")
