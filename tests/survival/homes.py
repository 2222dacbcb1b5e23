"""Homes as an earlier release left them, packed so that they can be unpacked anywhere.

A recorded home is a tar of a demo's folder: the database as SQL text, everything else as it lay there, with the
recorder's folder as ``ROOT`` in every text. ``python -m tests.survival.record_home`` makes one, run with the source of
the release that is to be recorded.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import sqlite3
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.deliver.daemon_world import SOURCE

ROOT: Final = Path("/tmp/recorded")
DATABASE: Final = "home/beadmill.db"
HOMES: Final = Path(__file__).parent / "homes"
LEFT_OUT: Final = ("home/logs", "home/daemon.lock", "home/daemon.json")
NOISE: Final = re.compile(r"\.pyc$|\.sample$|/pycache/|/__pycache__|/\.locks/")


def pack(archive: Path) -> None:
    """What lies below ``ROOT``, its daemon stopped. Paths of the recorder's machine are replaced first."""
    for path in _texts(ROOT):
        path.write_text(_anywhere(path.read_text(encoding="utf-8")), encoding="utf-8")
    with closing(sqlite3.connect(ROOT / DATABASE)) as conn:
        dump = _anywhere("\n".join(conn.iterdump()))
        for sha, data in conn.execute("select sha256, data from blobs").fetchall():
            clean = _anywhere(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            if clean != data:
                was, now = (
                    f"'{sha}',{len(data)},X'{data.hex().upper()}'",
                    f"'{sha}',{len(clean)},X'{clean.hex().upper()}'",
                )
                dump = dump.replace(was, now).replace(sha, hashlib.sha256(clean).hexdigest())
    with tarfile.open(archive, "w:xz") as tar:
        _add(tar, f"{DATABASE}.sql", dump.encode())
        for path in sorted(ROOT.rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if not (name.startswith((DATABASE, *LEFT_OUT)) or NOISE.search(name) or path.is_socket()):
                tar.add(path, name, recursive=False, filter=_nobodys)


def _anywhere(text: str) -> str:
    for mine, anybodys in ((str(Path(os.__file__).parent), "/usr/lib/python3"), (str(SOURCE), "/usr/lib/beadmill")):
        text = text.replace(mine, anybodys)
    return text


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def _nobodys(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def unpack(archive: Path, root: Path) -> None:
    """To a folder that is not there yet."""
    with tarfile.open(archive) as tar:
        tar.extractall(root, filter="data")
    for path in _texts(root):
        text = path.read_text(encoding="utf-8")
        if str(ROOT) in text:
            path.write_text(text.replace(str(ROOT), str(root)), encoding="utf-8")
    dump = root / f"{DATABASE}.sql"
    with closing(sqlite3.connect(root / DATABASE)) as conn:
        conn.executescript(dump.read_text(encoding="utf-8"))
        conn.execute("PRAGMA journal_mode=WAL")
    dump.unlink()
    (root / DATABASE).chmod(0o600)
    for tree in (root / "home" / "workspaces").glob("*/*/tree"):  # git finds its index stale by the new inodes
        subprocess.run(["git", "-C", str(tree), "status"], check=True, capture_output=True)


def _texts(root: Path) -> Iterator[Path]:
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink() and b"\0" not in (data := path.read_bytes()):
            try:
                data.decode()
            except UnicodeDecodeError:
                continue
            yield path


def clear() -> None:
    shutil.rmtree(ROOT, ignore_errors=True)
