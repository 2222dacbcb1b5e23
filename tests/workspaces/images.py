"""An image made of this machine's own files: no registry is in reach of the tests."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

PROGRAMS = ("sh", "cat", "ls", "env", "id")
MADE = "/made-by-the-image"


def make(name: str) -> None:
    """Five programs with their libraries, and one file to know it by."""
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as tar:
            for path in _files():
                tar.add(Path(path).resolve(), arcname=path.lstrip("/"))
            made = tarfile.TarInfo(MADE.lstrip("/"))
            made.size = 4
            tar.addfile(made, io.BytesIO(b"yes\n"))
        argv = ["podman", "import", "--change", "ENV PATH=/bin", "--change", "ENV OF_IMAGE=1", "-", name]
        subprocess.run(argv, input=whole.getvalue(), check=True, capture_output=True)


def remove(name: str) -> None:
    subprocess.run(["podman", "image", "rm", "--force", name], check=True, capture_output=True)


def _files() -> list[str]:
    found: dict[str, None] = {}
    for program in PROGRAMS:
        path = shutil.which(program)
        assert path is not None
        libraries = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
        found[f"/bin/{program}"] = None
        found |= dict.fromkeys(re.findall(r"(/\S+) \(0x", libraries))
    return list(found)
