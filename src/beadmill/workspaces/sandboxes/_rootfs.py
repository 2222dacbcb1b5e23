"""What a container shows, as arguments of podman and docker, and the empty folder that its root is made of. Standard
library only.

Both mount by depth, so what a later mount would hide is left out here; a bound folder that must not be written shows
the mounts below it read-only too, each by itself.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from beadmill.workspaces.sandboxes._mounts import Mount

FOLDERS: Final = ("proc", "sys", "dev", "run", "etc", "tmp", "var/tmp")  # of every root
DEFAULT: Final = ("/etc/containers/seccomp.json", "/usr/share/containers/seccomp.json")
# A namespace of its own is a way to the kernel's rarely used doors. podman's own list leaves it open.
CLOSED: Final = frozenset({
    "unshare", "setns", "clone", "clone3", "mount", "umount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "add_key", "keyctl", "request_key",
})  # fmt: skip
NAMESPACES: Final = 0x7E020000  # the flags of clone that make one
NO_SUCH_CALL: Final = 38  # ENOSYS: then C libraries take clone


def settled(mounts: Iterable[Mount]) -> list[Mount]:
    """Each place once, parents first, and nothing that a later mount covers."""
    kept: dict[Path, Mount] = {}
    mounted = _mounted()
    for mount in mounts:
        kept = {path: m for path, m in kept.items() if not path.is_relative_to(mount.target)}
        kept[mount.target] = mount
        if (source := mount.source) is not None and not mount.write:
            for below in (path for path in mounted if path != source and path.is_relative_to(source)):
                place = mount.target / below.relative_to(source)
                kept[place] = Mount(place, below)
    return sorted(kept.values(), key=lambda m: len(m.target.parts))


def arguments(mounts: Sequence[Mount], *, podman: bool) -> list[str]:
    return [part for mount in mounts for part in ("--mount", ",".join(map(_csv, _fields(mount, podman=podman))))]


def _fields(mount: Mount, *, podman: bool) -> list[str]:
    if mount.source is None:
        # podman would copy what lies there into it: what the folder is to hide.
        return ["type=tmpfs", f"destination={mount.target}", "tmpfs-mode=1777", *(["notmpcopyup"] if podman else [])]
    return ["type=bind", f"source={mount.source}", f"target={mount.target}", *([] if mount.write else ["readonly"])]


def _csv(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if re.search(r'[,"\n\r]', field) else field


def build(root: Path, mounts: Sequence[Mount], links: Iterable[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """A root folder with every place where something will be mounted, and the links. Returns the links that lie inside
    of a mount, to be made in there. Done twice it is the same."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    covered = [mount.target for mount in mounts]
    for mount in mounts:
        if _inside(mount.target, covered):
            continue
        place = root / mount.target.relative_to("/")
        if mount.source is None or mount.source.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
    late: list[tuple[Path, str]] = []
    for path, text in links:
        if _inside(path, covered):
            late.append((path, text))
            continue
        place = root / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            place.symlink_to(text)
    return late


def _inside(path: Path, places: Iterable[Path]) -> bool:
    return any(path != place and path.is_relative_to(place) for place in places)


def _mounted() -> list[Path]:
    """Where file systems are mounted on this machine."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    found = [Path(re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), line.split(" ")[4])) for line in lines]
    return list(dict.fromkeys(found))


def seccomp() -> str:
    """podman's own list of system calls without those that open a namespace; empty where it has none."""
    for name in DEFAULT:
        try:
            profile = json.loads(Path(name).read_bytes())
        except (OSError, ValueError):
            continue
        return json.dumps({**profile, "syscalls": [*map(_tightened, profile.get("syscalls", ())), *_CLONE]})
    return ""


def _tightened(rule: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in rule.get("names", ()) if name not in CLOSED]
    return {**rule, "names": names}


_CLONE: Final = (
    {
        "names": ["clone"], "action": "SCMP_ACT_ALLOW",
        "args": [{"index": 0, "value": NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}],
    },
    {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": NO_SUCH_CALL},
)  # fmt: skip
