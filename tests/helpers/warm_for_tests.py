"""Beadmill's own program, started warm: forked from a process that has imported it, so that a start costs no second.

``Warm([...], …)`` is a Popen of the command line. What it runs is the real program in a process of its own; only its
imports were made before. Tests of the start itself start cold.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from beadmill.processes.detach import Detached
from beadmill.processes.forkserver import Server, leave, take_environment
from beadmill.processes.starting import ASK

_BEGUN: list[Warm] = []  # kept: a collected one would warn that its process goes on
BEHIND = 3  # the words of "python -m beadmill.cli.main"
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "import sys; sys.path[:0] = sys.argv[2:]; from tests.helpers.warm_for_tests import serve; serve()"


class Warm(subprocess.Popen[Any]):
    """``args`` are those behind ``beadmill``; ``env`` must be given."""

    def _execute_child(self, *given: Any) -> None:
        args, _, _, _, _, cwd, env, _, _, _, in_child, in_ours, out_ours, out_child, err_ours, err_child, *_ = given
        standard = [mine if mine != -1 else number for number, mine in enumerate((in_child, out_child, err_child))]
        said = json.dumps({"args": args, "env": dict(env), "cwd": str(cwd or Path.cwd())}).encode()
        self._told, self.pid = _server().ask(said, standard)
        self._child_created = True
        self._close_pipe_fds(in_child, in_ours, out_ours, out_child, err_ours, err_child)  # type: ignore[attr-defined]

    def __del__(self, *_: Any) -> None:
        """The server buries it: who lets go of it leaves nothing behind."""

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            found, status = self._try_wait(os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if found else None
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """As waitpid answers; the server is the parent that buries it."""
        os.set_blocking(self._told, wait_flags == 0)
        try:
            code = int(os.read(self._told, 16))
        except BlockingIOError:
            return 0, 0
        os.close(self._told)
        return self.pid, code << 8 if code >= 0 else -code


def detached(argv: Sequence[str], *, env: Mapping[str, str], log: Path) -> Detached:
    """For processes.detach.detached in a test's own process: the daemon it starts is warm."""
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with log.open("ab") as out:
        begun = Warm(argv[BEHIND:], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/")
    _BEGUN.append(begun)
    return begun


class _Side:
    """One server per process of tests; it ends with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [sys.executable, "-c", PROGRAM, str(theirs.fileno()), str(ROOT), str(ROOT / "src")]
            env = {name: value for name, value in os.environ.items() if not name.startswith(("BEADMILL_", "GIT_"))}
            server = subprocess.Popen(argv, env=env, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, cwd="/")
        atexit.register(self._end, server)

    def _end(self, server: subprocess.Popen[bytes]) -> None:
        self._control.close()
        server.wait()

    def ask(self, said: bytes, standard: list[int]) -> tuple[int, int]:
        """Where the exit code comes, and the pid."""
        reading, writing = os.pipe()
        told, report = os.pipe()
        born, birth = os.pipe()
        with self._lock:
            socket.send_fds(self._control, [ASK], [reading, *standard, birth, report])
        for handle in (reading, birth, report):
            os.close(handle)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(said)
        with os.fdopen(born, "rb") as pid:
            return told, int(pid.read())


@functools.cache
def _server() -> _Side:
    return _Side()


# --- the server ---
def serve() -> None:
    """Imports what the command line and the daemon may need, then forks whenever it is asked."""
    import gc

    import alembic.command  # noqa: F401
    import typer._adapters  # noqa: F401
    from pydantic.v1 import BaseModel  # noqa: F401

    import beadmill.app
    import beadmill.cli.daemon
    import beadmill.cli.root
    import beadmill.web.server

    beadmill.cli.root.tree()
    beadmill.cli.daemon.detached = _detached  # type: ignore[attr-defined]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as control:
        gc.freeze()
        Server(control, _child).serve()


def _child(words: int, standard_in: int, standard_out: int, standard_err: int, birth: int) -> NoReturn:
    with os.fdopen(birth, "w") as file:
        file.write(str(os.getpid()))
    with os.fdopen(words, "rb") as said:
        head = json.loads(said.read())
    leave((standard_in, standard_out, standard_err))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    take_environment(head["env"])
    os.chdir(head["cwd"])
    _become(head["args"])


def _become(args: list[str]) -> NoReturn:
    """The program, and its end as an interpreter ends."""
    from beadmill.cli.main import main

    code = 1
    try:
        sys.argv = ["beadmill", *args]
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        if sys.exc_info()[0] is not None:
            import traceback

            traceback.print_exc()
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class _Begun:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if found else None
        return self._code


def _detached(argv: Sequence[str], *, env: Mapping[str, str], log: Path) -> Detached:
    """What a command starts in the background (a daemon), forked from the command."""
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    pid = os.fork()
    if pid:
        return _Begun(pid)
    os.setsid()
    os.chdir("/")
    nothing, out = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    leave((nothing, out, out))
    take_environment(env)
    _become(list(argv[BEHIND:]))
