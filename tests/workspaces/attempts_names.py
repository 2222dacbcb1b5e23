"""The attempts by name, as far as the tests tell them apart. attempts.py runs inside of a box and imports nothing of ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

NAMES: Final = tuple(re.findall(r'^    "([^"]+)":', Path(__file__).with_name("attempts.py").read_text(), re.MULTILINE))
NETWORK: Final = ("reach a port of the host", "reach an abstract socket", "reach a socket file")
# What an agent needs: its tree, its home, and with the network on whatever listens on the host's loopback.
ALLOWED: Final = ("write the tree", "write the home of the workspace", *NETWORK[:2])
# On the host these are tried for real: they reach nothing but the place of the test.
HARMLESS: Final = (
    "write outside", "write git's config", "plant a git hook", "write our marker", "read a secret",
    "read a secret through a link", "read another ticket", "look at a process outside", "signal a process outside",
    *NETWORK,
)  # fmt: skip
