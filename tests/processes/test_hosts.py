"""Which host and port an allow-list names, and which addresses stay closed."""

from __future__ import annotations

import pytest

from beadmill.processes.hosts import AllowList, is_public, plain, split


@pytest.mark.parametrize(
    ("listed", "host", "port", "named"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "example.org", 80, True),
        ("example.org", "example.org", 22, False),
        ("example.org", "www.example.org", 443, False),
        ("Example.ORG:8443", "example.org", 8443, True),
        ("example.org:8443", "example.org", 443, False),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "badexample.org", 443, False),
        ("127.0.0.1:80", "127.0.0.1", 80, True),
        ("[::1]:8080", "::1", 8080, True),
        ("[::1]", "0:0::1", 443, True),
    ],
)
def test_a_list_names_hosts_with_their_ports(listed: str, host: str, port: int, *, named: bool) -> None:
    assert AllowList([listed]).named(plain(host), port) is named


@pytest.mark.parametrize("wrong", ["", "*", "*.", "a*.example.org", "http://example.org", "a b", "a:0", "a:x", "[::1"])
def test_what_names_no_host_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"names no host|no port|no address"):
        AllowList([wrong])


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "::1", "::", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "no address",
    ],
)  # fmt: skip
def test_addresses_of_this_machine_and_its_neighbours_are_not_public(address: str) -> None:
    assert is_public(address) is False


def test_an_address_that_is_not_public_is_open_only_when_it_is_listed_itself() -> None:
    listed = AllowList(["example.org", "10.0.0.1:8080"])
    asked = [("10.0.0.1", 8080), ("10.0.0.1", 443), ("10.0.0.2", 8080), ("127.0.0.1", 443), ("1.1.1.1", 443)]
    assert [listed.open("example.org", *one) for one in asked] == [True, False, False, False, True]


def test_localhost_is_this_machine_and_no_other() -> None:
    listed = AllowList(["localhost:8080"])
    found = [listed.open("localhost", address, 8080) for address in ("127.0.0.1", "::1", "10.0.0.1")]
    assert found == [True, True, False]


def test_a_name_may_end_with_a_dot_and_an_address_may_have_brackets() -> None:
    assert [split(text, default=1) for text in ("A.org.:2", "[::1]:2", "a.org")] == [
        ("a.org", 2), ("::1", 2), ("a.org", 1),
    ]  # fmt: skip
