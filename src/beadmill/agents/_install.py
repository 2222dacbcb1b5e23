"""Installing an agent from npm into a folder of ours, and finding what was installed. Standard library only.

The folder lies in the data home: no rights are needed, nothing of the machine changes, and deleting it is the whole
uninstall. What is new is made beside it and swapped in at the end: a cancelled or failed install leaves what was there.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from beadmill.agents.contract import Installed, Say, quiet
from beadmill.domain.values import Json
from beadmill.errors import Unavailable
from beadmill.processes import executables
from beadmill.processes.environment import allowed

PATIENCE: Final = 1_200.0  # seconds: hundreds of megabytes over a slow line
_QUIET: Final = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=http")
_NODE: Final = "install Node.js 20 or newer, which brings npm; or install the CLI yourself and put it on the PATH"
# What npm says, and what a person can do about it.
_REMEDIES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), remedy)
    for pattern, remedy in (
        (r"ENOSPC|no space left|EDQUOT", "free some disk space at {folder}, then install again"),
        (r"EACCES|EPERM|EROFS|permission denied", "give yourself the right to write to {folder}, or name another `prefix` in the agent's settings"),
        (r"CERT|self.signed|unable to (?:verify|get local issuer)", "name your certificates in NODE_EXTRA_CA_CERTS, then install again"),
        (r"\bE(?:401|403)\b|ENEEDAUTH", "the registry refuses you: look at `npm config get registry` and its sign-in"),
        (r"\bE404\b|ETARGET|EBADPLATFORM|No matching version", "this registry has no such package for this machine: look at `npm config get registry`"),
        (r"ENOTFOUND|EAI_AGAIN|ECONN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|SOCKET|network", "the registry cannot be reached: look at the network, HTTPS_PROXY and `npm config get registry`"),
        (r"EINTEGRITY|ENOTEMPTY|EEXIST", "run `npm cache verify`, then install again"),
    )
)  # fmt: skip


def prefix(options: Mapping[str, Json], name: str) -> Path:
    """The folder of agent ``name``: the option ``prefix``, which the daemon sets; else below BEADMILL_HOME."""
    home = os.environ.get("BEADMILL_HOME") or "~/.local/share/beadmill"
    return Path(str(options.get("prefix") or f"{home}/agents/{name}")).expanduser().absolute()


def find(program: str, folder: Path, *, path: str | None) -> Path | None:
    """A program in our folder, else on ``path``; absolute and without symbolic links, or None."""
    return executables.find(str(folder / "bin" / program)) or executables.find(program, path=path)


def required(program: Path | None, wanted: str, *, agent: str) -> Path:
    """What a turn runs. Raises Unavailable when ``wanted`` was not found, Refused when it cannot be trusted."""
    if program is None:
        raise Unavailable(
            f"{Path(wanted).name} is not installed: {wanted!r} was not found",
            code="AGENT_MISSING",
            next=f"run: beadmill agent install {agent}",
        )
    return executables.require_trusted(program, os.environ)


def native(program: Path, layouts: Sequence[str]) -> Path:
    """The binary behind npm's node script; the program itself when it is no script, or nothing fits.

    ``layouts`` are globs below a ``node_modules``: ``@openai/codex-*/vendor/*/bin/codex``. A wrapper's child would
    survive the wrapper, so the child is what we run.
    """
    with program.open("rb") as file:
        if file.read(2) != b"#!":
            return program
    homes = [place for place in program.parents if place.name == "node_modules"]
    homes += [place / "node_modules" for place in program.parents[:3]]
    found = (binary for home in homes for layout in layouts for binary in sorted(home.glob(layout)))
    return next((binary.resolve() for binary in found if binary.is_file()), program)


async def installed(
    package: str, folder: Path, detect: Callable[[], Awaitable[Installed | None]], *, say: Say = quiet
) -> Installed:
    """Installs the package and looks at it. Raises Unavailable as ``npm`` does, and when its program is not found."""
    await npm(package, folder, say=say)
    found = await detect()
    if found is None:
        command = by_hand(package, folder)
        raise Unavailable(
            f"{command} went well, yet its program is not found", code="AGENT_INSTALL", details={"command": command}
        )
    return found


async def npm(package: str, folder: Path, *, version: str = "", say: Say = quiet) -> Path:
    """Installs the package; returns the folder of its programs.

    Raises Unavailable with the exact command, the end of what it said (``details``) and a remedy.
    """
    wanted = f"{package}@{version}" if version else package
    fresh = folder.with_name(f".{folder.name}.new")
    argv = ("npm", "install", "--global", "--prefix", str(fresh), *_QUIET, wanted)
    command = by_hand(wanted, folder)
    say(f"$ {command}")
    tail: tuple[str, ...] = ()
    try:
        await asyncio.to_thread(_empty, fresh)
        code, tail = await executables.stream(argv, env=_environment(), say=say, patience=PATIENCE)
        if code != 0:
            raise _failed(command, f"failed with {code}: {_reason(tail)}", folder, tail)
        await asyncio.to_thread(_swap, fresh, folder)
    except Unavailable as error:
        raise error if error.code == "AGENT_INSTALL" else _failed(command, error.message, folder, tail) from error
    except OSError as error:
        raise _failed(command, str(error), folder, tail) from error
    finally:
        await asyncio.to_thread(shutil.rmtree, fresh, ignore_errors=True)
    return folder / "bin"


def by_hand(package: str, folder: Path) -> str:
    """The command as a person would type it."""
    return f"npm install --global --prefix {folder} {package}"


def _environment() -> dict[str, str]:
    """npm also needs the user's HOME (its configuration) and what is configured by the environment."""
    own = [name for name in os.environ if name.lower().startswith("npm_config_")]
    return allowed(os.environ, also=("HOME", *own))


def _empty(fresh: Path) -> None:
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True, mode=0o700)


def _swap(fresh: Path, folder: Path) -> None:
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _reason(tail: Sequence[str]) -> str:
    """npm's own words for what went wrong, without its trace."""
    said = [
        line.removeprefix("npm error ").removeprefix("npm ERR! ")
        for line in tail
        if "rror" in line[:12] or "ERR!" in line
    ]
    return "; ".join(said[:4])[:400] or (tail[-1][:400] if tail else "it said nothing")


def _failed(command: str, message: str, folder: Path, tail: Sequence[str]) -> Unavailable:
    text = "\n".join((message, *tail))
    remedy = next((remedy for pattern, remedy in _REMEDIES if pattern.search(text)), "")
    if "npm cannot be started" in message or re.search(r"env: .?node.?: No such file", text):
        remedy = _NODE
    return Unavailable(
        f"{command}: {message}",
        code="AGENT_INSTALL",
        details={"command": command, "reason": message, "tail": list(tail)},
        kept="what was installed before" if folder.exists() else "nothing was changed",
        next=remedy.format(folder=folder.parent) or "run the command yourself to see more",
    )
