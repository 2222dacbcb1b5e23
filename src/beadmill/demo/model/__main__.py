"""``python -m beadmill.demo.model SCENARIO [--port N]`` prints the address and serves."""

from __future__ import annotations

import sys

from beadmill.demo.model.server import main

sys.exit(main(sys.argv[1:]))
