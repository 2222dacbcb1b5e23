"""Which of these processes listen on which ports. Reads /proc; standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from beadmill.processes.procs import Proc

_LISTEN: Final = "0A"  # the state's number in /proc/net/tcp
_SOCKET: Final = "socket:["


def listening(found: Iterable[Proc]) -> Mapping[Proc, tuple[int, ...]]:
    """TCP ports by process, for those that have any. A port held by several is named at each of them."""
    ports: dict[Proc, tuple[int, ...]] = {}
    tables: dict[str, Mapping[str, int]] = {}
    for proc in found:
        place = Path(f"/proc/{proc.pid}")
        try:
            network = (place / "ns/net").readlink().name
            if network not in tables:
                tables[network] = dict(_open_ports(place))
            mine = {tables[network][inode] for inode in _sockets(place) if inode in tables[network]}
        except OSError:  # it is gone
            continue
        if mine:
            ports[proc] = tuple(sorted(mine))
    return ports


def _open_ports(place: Path) -> Iterator[tuple[str, int]]:
    """Inode of the socket, port: of the network that the process lives in."""
    for name in ("net/tcp", "net/tcp6"):
        try:
            lines = (place / name).read_text().splitlines()[1:]
        except FileNotFoundError:  # a kernel without IPv6
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTEN:
                yield fields[9], int(fields[1].rpartition(":")[2], 16)


def _sockets(place: Path) -> Iterator[str]:
    for handle in (place / "fd").iterdir():
        try:
            target = handle.readlink().name
        except FileNotFoundError:  # closed meanwhile
            continue
        if target.startswith(_SOCKET):
            yield target[len(_SOCKET) : -1]
