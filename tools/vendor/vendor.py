"""Vendored browser files: fetches what vendor.toml names and writes vendor.lock; ``--check`` compares with the lock."""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "src" / "beadmill" / "web" / "static" / "vendor"
LOCK = TARGET / "vendor.lock"


def wanted() -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = tomllib.loads((HERE / "vendor.toml").read_text())["file"]
    return files


def locked() -> dict[str, Any]:
    lock: dict[str, Any] = json.loads(LOCK.read_text())
    return lock


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch(package: str, version: str, into: Path) -> Path:
    """The unpacked package of exactly that version."""
    command = ["npm", "pack", f"{package}@{version}", "--silent", "--pack-destination", str(into)]
    name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]
    with tarfile.open(into / name) as archive:
        archive.extractall(into, filter="data")
    return into / "package"


def joined(one: dict[str, Any], root: Path) -> str:
    banner = f"/*! {one['package']} {one['version']} ({one['licence']}): {', '.join(one['parts'])} */\n"
    texts = [(root / part).read_text() for part in one["parts"]]
    without_maps = ["\n".join(x for x in t.splitlines() if not x.startswith("//# sourceMappingURL")) for t in texts]
    return banner + ";\n".join(without_maps) + "\n"


def write(packages: Path | None) -> None:
    """``packages`` is a node_modules folder to take from instead of the registry."""
    TARGET.mkdir(parents=True, exist_ok=True)
    lock = {}
    for one in wanted():
        with tempfile.TemporaryDirectory() as folder:
            root = packages / one["package"] if packages else fetch(one["package"], one["version"], Path(folder))
            found = json.loads((root / "package.json").read_text())["version"]
            if found != one["version"]:
                raise SystemExit(f"{one['package']}: wanted {one['version']}, found {found}")
            (TARGET / one["target"]).write_text(joined(one, root))
        lock[one["target"]] = {
            "package": one["package"],
            "version": one["version"],
            "sha256": sha256(TARGET / one["target"]),
        }
    LOCK.write_text(json.dumps(lock, indent=2) + "\n")


def problems() -> list[str]:
    """What differs between vendor.toml, vendor.lock and the files."""
    lock, files = locked(), {p.name for p in TARGET.iterdir()} - {LOCK.name}
    found = [f"{name}: not in vendor.lock" for name in sorted(files - lock.keys())]
    found += [f"{name}: is not there" for name in sorted(lock.keys() - files)]
    found += [
        f"{name}: was changed" for name in sorted(files & lock.keys()) if sha256(TARGET / name) != lock[name]["sha256"]
    ]
    versions = {one["target"]: (one["package"], one["version"]) for one in wanted()}
    found += [
        f"{name}: vendor.toml and vendor.lock differ"
        for name in sorted(versions.keys() | lock.keys())
        if versions.get(name) != (lock.get(name, {}).get("package"), lock.get(name, {}).get("version"))
    ]
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="compare only; needs no network")
    options.add_argument("--from", dest="packages", type=Path, help="a node_modules folder to take the packages from")
    asked = options.parse_args()
    if not asked.check:
        write(asked.packages)
    found = problems()
    sys.stderr.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
