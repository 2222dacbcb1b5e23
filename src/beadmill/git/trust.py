"""Settings of a repository that can start programs or send work elsewhere: only those that a person knows are used.

git obeys the configuration inside a repository, and whoever can write there (an agent without a sandbox, an install
script) could make Beadmill's next git command run anything. What was set when Beadmill first saw a repository is the
person's and is written down in the data home; a later difference stops every git command until it is taken back or a
person takes it over (``beadmill project set --trust``). Without a folder (``keep``) nothing is compared.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from beadmill import redact
from beadmill.errors import Refused

Ask = Callable[[], Awaitable[bytes]]  # ``git config --list --show-scope -z`` of the repository
Powers = Mapping[str, tuple[str, ...]]  # setting → hashes of its values in order

# Hooks, fsmonitor, editors, pagers, external diffs and aliases are not here: git/run.py switches them off for good.
_POWERS = re.compile(
    r"filter\..*\.(?:clean|smudge|process)|merge\..*\.driver|core\.(?:sshcommand|gitproxy|alternaterefscommand)"
    r"|credential\..*|gpg\.(?:.*\.)?(?:program|defaultkeycommand)|url\..*|protocol\..*|http\..*"
    r"|remote\.(?:origin|upstream)\.(?:url|pushurl|uploadpack|receivepack|vcs|proxy|mirror)|remote\.origin\.gh-resolved"
    r"|include(?:if\..*)?\.path",
    re.DOTALL,
)
_HARMLESS = re.compile(r"filter\.lfs\.\w+=git-lfs [\w %-]+")  # what ``git lfs install`` writes
_SCOPES = {"local": "common", "worktree": "own"}


@dataclass(slots=True)
class _Kept:
    folder: Path | None = None
    seen: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)


_kept = _Kept()


def keep(folder: Path | None) -> None:
    """Where the known settings are written down, for this whole process; None = nothing is compared."""
    _kept.folder = folder
    _kept.seen.clear()


async def check(git_dir: Path, common: Path, ask: Ask) -> None:
    """Raises Refused naming what is new. Costs two looks at files while nothing has changed."""
    if _kept.folder is None:
        return
    at, now = (str(git_dir), str(common)), _stamp(git_dir, common)
    if _kept.seen.get(at) == now:
        return
    powers = _powers(await ask())
    for scope, place in (("common", common), ("own", git_dir)):
        _compare(_record(_kept.folder, scope, place), powers[scope], common)
    if not any(name.startswith("include") for scope in powers.values() for name in scope):
        _kept.seen[at] = now  # included files may change unseen


async def accept(git_dir: Path, common: Path, ask: Ask) -> None:
    """A person knows the settings as they are now."""
    if _kept.folder is None:
        return
    powers = _powers(await ask())
    for scope, place in (("common", common), ("own", git_dir)):
        _write(_record(_kept.folder, scope, place), powers[scope])
    _kept.seen.clear()


def _stamp(git_dir: Path, common: Path) -> tuple[str, ...]:
    return tuple(_facts(path) for path in (common / "config", git_dir / "config.worktree"))


def _facts(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "none"
    return f"{found.st_mtime_ns} {found.st_ctime_ns} {found.st_size} {found.st_ino}"


def _powers(raw: bytes) -> dict[str, dict[str, tuple[str, ...]]]:
    """What the two files of a repository say; the user's own and the system's configuration may say anything."""
    found: dict[str, dict[str, tuple[str, ...]]] = {"common": {}, "own": {}}
    fields = raw.decode("utf-8", "surrogateescape").split("\0")
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        name, _, value = entry.partition("\n")
        redact.met(value if "://" in value else name.partition(".")[2])
        if scope in _SCOPES and _POWERS.fullmatch(name) and not _HARMLESS.fullmatch(f"{name}={value}"):
            there = found[_SCOPES[scope]]
            there[name] = (*there.get(name, ()), hashlib.sha256(os.fsencode(value)).hexdigest())  # may hold passwords
    return found


def _record(folder: Path, scope: str, place: Path) -> Path:
    name = hashlib.sha256(os.fsencode(place.resolve())).hexdigest()[:24]
    return folder / f"{scope}-{name}.json"


def _compare(record: Path, now: Powers, common: Path) -> None:
    known = _read(record)
    if known is None or _first_origin(known, now):
        _write(record, now)
        return
    names = sorted(name for name in known.keys() | now.keys() if known.get(name) != now.get(name))
    if names:
        raise Refused(
            f"the repository's own git settings changed, and these can run programs or send work elsewhere: "
            f"{', '.join(names)}",
            code="REPOSITORY_SETTINGS_CHANGED",
            details={"repository": str(common), "settings": names},
            kept="No git command was run; branches, worktrees and files are as they were.",
            next=f"Look: git config --file {common / 'config'} --list. Take them back (git config --unset …), or, when "
            "they are yours, beadmill project set <project> --trust; then retry.",
        )


def _first_origin(known: Powers, now: Powers) -> bool:
    """A repository gets its first origin: nothing that was known is sent elsewhere."""
    rest = {name: values for name, values in now.items() if name != "remote.origin.url"}
    return "remote.origin.url" not in known and "remote.origin.url" in now and rest == known


def _read(record: Path) -> Powers | None:
    try:
        data = json.loads(record.read_text())
    except FileNotFoundError:
        return None
    return {name: tuple(values) for name, values in data.items()}


def _write(record: Path, powers: Powers) -> None:
    record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = record.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(powers, ensure_ascii=True))
    part.replace(record)
