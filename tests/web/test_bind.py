"""Two daemons that start at once and want the same port."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from beadmill.settings import Settings
from beadmill.web.server import PortTaken, bind


def test_a_port_is_ours_from_the_moment_it_is_bound(tmp_path: Path) -> None:
    with bind(Settings(home=tmp_path, port=0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(PortTaken):
            bind(Settings(home=tmp_path, port=port))


def test_a_taken_default_port_gives_a_free_one(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = Settings.model_construct(_fields_set=set(), home=tmp_path, host="127.0.0.1", port=port)
        with bind(settings) as other:
            assert other.getsockname()[1] not in (0, port)
