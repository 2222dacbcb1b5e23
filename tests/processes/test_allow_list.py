"""The network policy allow-list, with the real runner, real boxes and servers of this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from beadmill.domain.ended import CommandResult, Ran, Replied
from beadmill.processes.spec import EventKind, Policy
from tests.processes.session_world import World, until

CONNECT = """
import http.client, sys
way = http.client.HTTPConnection("127.0.0.1", 47420)
host, port = sys.argv[1].split(":")
way.set_tunnel(host, int(port))
way.request("GET", "/tunnel")
print(way.getresponse().read().decode())
"""
GET = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=20).read().decode())"
ECHO = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], b'x' * 300_000).read().decode())"
HAND_OVER = """
import os, socket
for n in range(3):
    way = socket.socket(socket.AF_UNIX)
    way.connect("/run/beadmill-door")
    socket.send_fds(way, [b"."], [os.open("/dev/null", os.O_RDONLY)] if n else [way.fileno()])
    print(way.recv(1))
"""


class Told(BaseHTTPRequestHandler):
    """Says what it was asked."""

    def do_GET(self) -> None:
        self._say(f"{self.path} {self.headers['Host']} {self.headers['Proxy-Authorization']} {self.headers['Test-Id']}")

    def do_POST(self) -> None:
        self._say(str(len(self.rfile.read(int(self.headers["Content-Length"])))))

    def _say(self, text: str) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nothing."""


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """Two servers: one that will be listed, one that will not."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Told) for _ in range(2)]
    threads = [threading.Thread(target=server.serve_forever, args=(0.05,)) for server in servers]
    for thread in threads:
        thread.start()
    yield servers[0].server_port, servers[1].server_port
    for server in servers:
        server.shutdown()
        server.server_close()
    for thread in threads:
        thread.join()


@pytest.fixture(
    params=[
        pytest.param("bubblewrap", marks=pytest.mark.sandbox),
        pytest.param("container", marks=[pytest.mark.container, pytest.mark.long]),
    ]
)
def listed(request: pytest.FixtureRequest, tmp_path: Path, ports: tuple[int, int]) -> Iterator[World]:
    made = World(tmp_path, sandbox=request.param)
    for name, code in (("get", GET), ("connect", CONNECT), ("echo", ECHO), ("hand_over", HAND_OVER)):
        (made.tree / f"{name}.py").write_text(code)
    made.box = replace(made.box, policy=Policy(network="allow-list", hosts=(f"127.0.0.1:{ports[0]}",)))
    yield made
    made.close()


async def results(world: World, *scripts: str) -> list[CommandResult]:
    ran = await world.run("t", world.shell(*scripts, stop=False))
    assert isinstance(ran, Ran)
    return list(ran.results)


async def warnings(world: World) -> list[str]:
    session = world.sessions.find("t")
    assert session is not None
    return [str(e.data["message"]) async for _, e in session.events() if e.kind is EventKind.WARNING]


@pytest.mark.parametrize(
    "script",
    [
        "python3 get.py 'http://127.0.0.1:{0}/a?b=c'",
        "curl -sS -H 'Test-Id: None' -H 'Proxy-Authorization: x' 'http://127.0.0.1:{0}/a?b=c'; echo",
    ],
)
async def test_a_listed_host_answers(listed: World, ports: tuple[int, int], script: str) -> None:
    (said,) = await results(listed, script.format(*ports))
    assert (said.exit, said.output) == (0, f"/a?b=c 127.0.0.1:{ports[0]} None None\n")


async def test_headers_of_others_pass(listed: World, ports: tuple[int, int]) -> None:
    (said,) = await results(listed, f"curl -sS -H 'Test-Id: 7' http://127.0.0.1:{ports[0]}/")
    assert said.output == f"/ 127.0.0.1:{ports[0]} None 7"


async def test_a_tunnel_leads_to_a_listed_host(listed: World, ports: tuple[int, int]) -> None:
    (said,) = await results(listed, f"python3 connect.py 127.0.0.1:{ports[0]}")
    assert said.output == f"/tunnel 127.0.0.1:{ports[0]} None None\n"


async def test_what_is_sent_arrives_whole(listed: World, ports: tuple[int, int]) -> None:
    (said,) = await results(listed, f"python3 echo.py http://127.0.0.1:{ports[0]}/")
    assert said.output == "300000\n"


async def test_other_hosts_are_refused_and_each_is_told_once(listed: World, ports: tuple[int, int]) -> None:
    ask = f"curl -sS -w '%{{http_code}}' http://127.0.0.1:{ports[1]}/"
    said = await results(listed, ask, ask, f"python3 connect.py localhost:{ports[0]} 2>&1 | tail -1")
    refused = f"127.0.0.1:{ports[1]} is not in allow_hosts"
    assert [r.output for r in said[:2]] == [f"Beadmill: {refused}\n403"] * 2
    assert said[2].output == "OSError: Tunnel connection failed: 403 Forbidden\n"
    assert await warnings(listed) == [
        f"network allow-list: 127.0.0.1:{ports[1]} was refused: it is not in allow_hosts",
        f"network allow-list: localhost:{ports[0]} was refused: it is not in allow_hosts",
    ]


async def test_a_listed_name_does_not_open_this_machine(listed: World, ports: tuple[int, int]) -> None:
    listed.box = replace(
        listed.box, policy=Policy(network="allow-list", hosts=(f"127.1:{ports[0]}",))
    )  # to a resolver a name
    (said,) = await results(listed, f"python3 connect.py 127.1:{ports[0]} 2>&1 | tail -1")
    assert said.output == "OSError: Tunnel connection failed: 403 Forbidden\n"
    assert await warnings(listed) == [
        f"network allow-list: 127.1:{ports[0]} was refused: it leads to 127.0.0.1, which allow_hosts does not list itself"
    ]


async def test_localhost_may_be_listed_by_name(listed: World, ports: tuple[int, int]) -> None:
    listed.box = replace(listed.box, policy=Policy(network="allow-list", hosts=(f"localhost:{ports[0]}",)))
    (said,) = await results(listed, f"python3 get.py http://localhost:{ports[0]}/")
    assert said.output == f"/ localhost:{ports[0]} None None\n"


async def test_past_the_proxy_nothing_of_the_host_is_in_reach(listed: World, ports: tuple[int, int]) -> None:
    past, inside = "curl -sS --noproxy '*' -m 5", "tail -n +3 /proc/net/dev | cut -d: -f1"
    said = await results(listed, *(f"{past} http://127.0.0.1:{port}/" for port in ports), inside)
    assert [r.exit for r in said] == [7, 7, 0]  # 7 = curl could not connect
    assert said[2].output.strip() == "lo"


async def test_the_door_takes_nothing_but_sockets_that_listen(listed: World, ports: tuple[int, int]) -> None:
    said = await results(listed, "python3 hand_over.py 2>&1 | sort -u", f"python3 get.py http://127.0.0.1:{ports[0]}/")
    assert [r.output for r in said] == ["b''\n", f"/ 127.0.0.1:{ports[0]} None None\n"]


async def test_servers_of_the_box_itself_are_reached_without_the_proxy(listed: World) -> None:
    serve = "python3 -m http.server --bind ::1 8123 >/dev/null 2>&1 & until curl -sS -o /dev/null 'http://[::1]:8123/readme'"
    (listed.tree / "readme").write_text("mine")
    (said,) = await results(listed, f"({serve} 2>/dev/null; do sleep 0.05; done); curl -sS 'http://[::1]:8123/readme'")
    assert said.output == "mine"


async def test_commands_end_as_they_do_without_a_proxy(listed: World) -> None:
    said = await results(listed, "kill -9 $$", "nowhere", "yes | head -1; exit 3")
    assert [r.exit for r in said] == [137, 127, 3]
    assert said[2].output == "y\n"  # with SIGPIPE ignored "yes" would complain


async def test_an_agent_has_the_allow_list_too(listed: World, ports: tuple[int, int]) -> None:
    ask = f"for port in {ports[0]} {ports[1]}; do curl -sS http://127.0.0.1:$port/ >>said; done"
    listed.play({"shell": ask}, {"reply": "done"})
    assert isinstance(await listed.run("t", listed.task()), Replied)
    assert (listed.tree / "said").read_text() == (
        f"/ 127.0.0.1:{ports[0]} None NoneBeadmill: 127.0.0.1:{ports[1]} is not in allow_hosts\n"
    )


async def test_the_door_and_its_connections_end_with_the_session(listed: World, ports: tuple[int, int]) -> None:
    hang = f"import socket; s = socket.create_connection(('127.0.0.1', 47420)); open('up', 'w'); s.recv(1)  # {ports}"
    (listed.tree / "hang.py").write_text(hang)
    session = await listed.start("t", listed.shell("exec python3 hang.py"))
    await until((listed.tree / "up").exists)
    assert (session.folder / "door").is_socket()
    await session.stop("enough")
    assert ([p.name for p in session.folder.glob("door")], listed.running("t")) == ([], set())


async def test_a_list_that_names_no_host_starts_nothing(listed: World) -> None:
    listed.box = replace(listed.box, policy=Policy(network="allow-list", hosts=("*",)))
    (said,) = await results(listed, "touch ran")
    assert (said.cannot_start, (listed.tree / "ran").exists()) == (True, False)
    assert said.output == "cannot start: the allow-list is wrong: '*' names no host"
