"""The command line's entry: answers --version at once, everything else loads the commands."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    argv = sys.argv[1:]
    if argv in (["--version"], ["-V"]):
        from beadmill import __version__

        sys.stdout.write(f"beadmill {__version__}\n")
        return
    gc.disable()  # nothing loaded here is garbage, and looking for some is a fifth of the start
    from beadmill.cli.root import run

    gc.enable()
    sys.exit(run(argv))


if __name__ == "__main__":
    main()
