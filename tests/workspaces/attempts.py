"""What a hostile program tries from inside a box; prints {attempt: what came of it}. Standard library only.

``attempts.py <json>``: facts about the outside (paths, a pid, ports) and the names of the attempts. "done" = it worked.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

F: dict[str, Any] = json.loads(sys.argv[1])
LIBC = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT, MS_BIND, MNT_DETACH, CLONE_NEWUSER, PTRACE_ATTACH = 32, 4096, 2, 0x10000000, 16


def write(path: str) -> None:
    with Path(path).open("a") as file:
        file.write("planted")


def read(*paths: str) -> None:
    """Works when any of them can be read."""
    errors = []
    for path in paths:
        try:
            Path(path).read_bytes()
        except OSError as error:
            errors.append(error)
        else:
            return
    raise errors[0]


def call(name: str, *arguments: Any) -> None:
    if getattr(LIBC, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def connect(family: int, address: Any) -> None:
    with socket.socket(family) as end:
        end.settimeout(3)
        end.connect(address)


def through_link() -> None:
    link = Path("link")
    link.unlink(missing_ok=True)
    link.symlink_to(F["secrets"][0])
    read("link")


def any_process_of_others() -> None:
    seen = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
    if F["pid"] not in seen:
        raise ProcessLookupError(F["pid"])
    Path(f"/proc/{F['pid']}/environ").read_bytes()


ATTEMPTS: dict[str, Callable[[], None]] = {
    "write outside": lambda: write(F["home"] + "/planted"),
    "write the system": lambda: write("/usr/planted"),
    "write the root folder": lambda: write("/planted"),
    "write git's config": lambda: write(F["common"] + "/config"),
    "plant a git hook": lambda: write(F["common"] + "/hooks/post-checkout"),
    "write a ref": lambda: write(F["common"] + "/refs/heads/planted"),
    "write the record of the tree": lambda: write(F["common"] + "/worktrees/tree/HEAD"),
    "write the .git file": lambda: write(F["tree"] + "/.git"),
    "replace the .git file": lambda: Path(F["tree"] + "/.git").unlink(),
    "write our marker": lambda: write(F["workspace"] + "/runtime/tree.json"),
    "read a secret": lambda: read(*F["secrets"]),
    "read a secret through a link": through_link,
    "read the password hashes": lambda: read("/etc/shadow", "/etc/gshadow"),
    "read another ticket": lambda: read(F["other"]),
    "look at a process outside": any_process_of_others,
    "look through the root of a process outside": lambda: read(f"/proc/{F['pid']}/root/etc/passwd"),
    "signal a process outside": lambda: os.kill(F["pid"], 0),
    "trace a process outside": lambda: call("ptrace", PTRACE_ATTACH, F["pid"], 0, 0),
    "remount the root writable": lambda: call("mount", b"none", b"/", None, MS_REMOUNT | MS_BIND, None),
    "remount the system writable": lambda: call("mount", b"none", b"/usr", None, MS_REMOUNT | MS_BIND, None),
    "remount git writable": lambda: call("mount", b"none", F["common"].encode(), None, MS_REMOUNT | MS_BIND, None),
    "take a mount away": lambda: call("umount2", b"/tmp", MNT_DETACH),
    "mount something": lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
    "open a user namespace": lambda: call("unshare", CLONE_NEWUSER),
    "enter the namespace of init": lambda: call("setns", os.open("/proc/1/ns/user", os.O_RDONLY), 0),
    "become another user": lambda: os.setuid(1),
    "change the root": lambda: os.chroot("/tmp"),
    "make a device": lambda: os.mknod("device", 0o600 | 0o060000, os.makedev(254, 0)),
    "set a sysctl": lambda: write("/proc/sys/kernel/core_pattern"),
    "press sysrq": lambda: write("/proc/sysrq-trigger"),
    "type into the terminal": lambda: os.close(os.open("/dev/tty", os.O_RDWR)),
    "reach a port of the host": lambda: connect(socket.AF_INET, ("127.0.0.1", F["port"])),
    "reach an abstract socket": lambda: connect(socket.AF_UNIX, "\0" + F["abstract"]),
    "reach a socket file": lambda: connect(socket.AF_UNIX, F["socket"]),
    "write the tree": lambda: write(F["tree"] + "/mine"),
    "write the home of the workspace": lambda: write(F["workspace"] + "/home/mine"),
}


def outcome(act: Callable[[], None]) -> str:
    try:
        act()
    except OSError as error:
        return f"refused: {error.strerror or error}"
    return "done"


if __name__ == "__main__":
    signal.alarm(30)
    sys.stdout.write(json.dumps({name: outcome(ATTEMPTS[name]) for name in F["names"]}))
