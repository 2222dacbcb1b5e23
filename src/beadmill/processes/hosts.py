"""Which hosts an allow-list names, and which addresses it keeps closed whatever their name. Standard library only."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

PORTS: Final = (443, 80)  # of a host that is listed without a port
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Rule:
    """``name`` is in lower case, an address without brackets; ``*.example.org`` is every name below example.org."""

    name: str
    ports: tuple[int, ...] = PORTS

    def holds(self, host: str, port: int) -> bool:
        below = self.name.startswith("*.") and host.endswith(self.name[1:]) and host != self.name[1:]
        return port in self.ports and (below or host == self.name)


class AllowList:
    def __init__(self, hosts: Iterable[str]) -> None:
        """Raises ValueError for what names no host."""
        self._rules = tuple(map(rule_of, hosts))

    def named(self, host: str, port: int) -> bool:
        """``host`` as ``plain`` gives it."""
        return any(rule.holds(host, port) for rule in self._rules)

    def open(self, host: str, address: str, port: int) -> bool:
        """May this address be connected to, once the listed ``host`` has led to it? What is not of the public internet
        must be listed itself: a name server would otherwise decide what of this machine is in reach. No name server is
        asked for localhost."""
        here = host == "localhost" and _is_loopback(address)
        return is_public(address) or here or self.named(plain(address), port)

    def loopback(self) -> frozenset[str]:
        """Names of this machine that the list has."""
        return frozenset(r.name for r in self._rules if r.name == "localhost" or _is_loopback(r.name))


def rule_of(text: str) -> Rule:
    """``name``, ``*.name``, ``name:port``, an address, ``[v6]:port``. Raises ValueError."""
    host, port = split(text, default=0)
    inner = host.removeprefix("*.")
    if not inner or "*" in inner or any(c in inner for c in "/@ "):
        raise ValueError(f"{text!r} names no host")
    return Rule(host, (port,) if port else PORTS)


def split(authority: str, *, default: int) -> tuple[str, int]:
    """Host and port of ``host[:port]``. Raises ValueError."""
    if authority.startswith("["):
        host, closed, rest = authority[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ValueError(f"{authority!r} is no address")
        number = rest[1:]
    else:
        host, _, number = authority.partition(":")
    if number and not (number.isascii() and number.isdigit() and 0 < int(number) < 65_536):
        raise ValueError(f"{authority!r} has no port that can be")
    return plain(host), int(number) if number else default


def plain(host: str) -> str:
    """One spelling: names in lower case without the last dot, addresses as they are printed."""
    host = host.lower().removesuffix(".")
    address = _address(host)
    return host if address is None else str(address)


def is_public(address: str) -> bool:
    """Of the public internet: not this machine, its neighbours, nor a group."""
    known = _address(address)
    return known is not None and all(a.is_global and not a.is_multicast for a in _meant(known))


def _meant(address: Address) -> Sequence[Address]:
    """With the address that a packet to it may end at."""
    if isinstance(address, ipaddress.IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    inner: list[Address] = [] if address.sixtofour is None else [address.sixtofour]
    if address in _NAT64:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return (address, *inner)


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return address is not None and address.is_loopback
