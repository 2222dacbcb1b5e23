"""The only place that starts git: recorded folders, no hooks of the repository, no prompts, bytes out.

git runs in its own process session. It inherits the flock of the act it belongs to (git/locks.py), so when this
process is killed git finishes its command, and the next act waits for it.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from beadmill.errors import BeadmillError, Unavailable
from beadmill.git import credentials, trust
from beadmill.git.locks import inherited
from beadmill.processes import executables
from beadmill.processes.environment import TRUSTED_DIRS

# What git may see of our environment: where things are, the user's keys and proxies; never a token of ours.
PASSED = (
    *(
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR",
        "GNUPGHOME",
        "DBUS_SESSION_BUS_ADDRESS",
    ),
    *("SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
    *("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "ALL_PROXY"),
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"),
)
FIXED = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
}
# The repository's config is the user's own and stays in force, but for what would run code or change the user's refs;
# what else could run code is held by git/trust.py.
CONFIG = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "branch.autoSetupMerge=false", "core.quotePath=false"),
    *("gc.auto=0", "maintenance.auto=false", "credential.interactive=false", "user.useConfigOnly=true"),
    *("submodule.recurse=false", "advice.detachedHead=false", "color.ui=false", "i18n.commitEncoding=UTF-8"),
    *("i18n.logOutputEncoding=UTF-8", "core.splitIndex=false", "log.showSignature=false", "diff.external="),
    *("fetch.recurseSubmodules=false", "push.recurseSubmodules=no", "protocol.ext.allow=never"),
    "diff.submodule=short",
)
# For ``status``: git must not run itself, by its configuration, inside a repository that lies in the tree.
STRANGERS = ("--ignore-submodules=dirty",)
# Network commands may leave helpers behind (ssh masters, credential caches) that would keep a lock for ever.
NETWORK = frozenset({"fetch", "push", "ls-remote", "submodule"})
LOCKED = re.compile(r"[Uu]nable to create '([^']+\.lock)': File exists|cannot lock ref .*\.lock': File exists")
JUDGED = 5.0  # seconds for which a program once found trusted is taken to be it
RETRIES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0)  # seconds between tries of a command that met a lock file
CREDENTIALS = re.compile(r"(\w+://)[^/@\s]+@")


class GitFailed(BeadmillError):
    """A git command ended with a code its caller did not expect."""


@dataclass(frozen=True, slots=True)
class Done:
    """``err`` is decoded and free of credentials in addresses."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """stdout as text without its last newline; bytes that are not UTF-8 survive a round trip through ``encode``."""
        return decode(self.out).rstrip("\n")

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a ``-z`` output."""
        return tuple(decode(field) for field in self.out.split(b"\0") if field)


@dataclass(frozen=True, slots=True)
class Repo:
    """``common_dir`` is set for a linked worktree, so that nothing inside the worktree's record is believed."""

    git_dir: Path
    work_tree: Path | None
    common_dir: Path | None = None

    @property
    def common(self) -> Path:
        return self.common_dir or self.git_dir

    async def git(
        self,
        *args: str,
        input: bytes | None = None,  # noqa: A002 - the name of subprocess
        ok: Sequence[int] = (0,),
        env: Mapping[str, str] | None = None,
        timeout: float = 120.0,  # noqa: ASYNC109 - seconds for git, not for the caller
    ) -> Done:
        """Runs git to its end. Raises GitFailed for a code outside ``ok`` (empty = any code), Unavailable when git is
        missing, takes longer than ``timeout`` or a foreign lock file does not go away, Refused when the repository got
        settings that nobody vouches for (git/trust.py)."""
        await trust.check(self.git_dir, self.common, self._settings)
        command = [_program(), *self._options(), *args]
        variables = self._env({**await self._sign_in(args), **(env or {})})
        for pause in (*RETRIES, None):
            done = await _run(command, variables, data=input, cwd=self._cwd(), timeout=timeout, verb=args[0])
            met = LOCKED.search(done.err) if done.code else None
            if met is None:
                break
            if pause is None:
                raise _locked(args[0], met, done)
            await asyncio.sleep(pause)
        if ok and done.code not in ok:
            raise failed(args[0], done)
        return done

    async def _sign_in(self, args: Sequence[str]) -> dict[str, str]:
        """For a command that goes over the network: the remote is its first word that is no option."""
        remote = next((part for part in args[1:] if not part.startswith("-")), "")
        if args[0] not in NETWORK or not remote or not credentials.wanted():
            return {}
        asked = [_program(), *self._options(), "remote", "get-url", remote]
        done = await _run(asked, self._env({}), data=None, cwd=self._cwd(), timeout=30, verb="remote")
        return await credentials.variables(remote if done.code else done.text)

    async def trust(self) -> None:
        """A person vouches for the settings of this repository as they are now."""
        await trust.accept(self.git_dir, self.common, self._settings)

    async def _settings(self) -> bytes:
        command = [_program(), *self._options(), "config", "--list", "--show-scope", "-z"]
        done = await _run(command, self._env({}), data=None, cwd=self._cwd(), timeout=30, verb="config")
        if done.code:
            raise failed("config", done)
        return done.out

    def _options(self) -> list[str]:
        options = [part for setting in CONFIG for part in ("-c", setting)]
        options += ["--no-pager", f"--git-dir={self.git_dir}"]
        return [*options, f"--work-tree={self.work_tree}"] if self.work_tree else options

    def _env(self, extra: Mapping[str, str]) -> dict[str, str]:
        env = {name: os.environ[name] for name in PASSED if name in os.environ} | FIXED
        if self.common_dir:
            env["GIT_COMMON_DIR"] = str(self.common_dir)
        return env | dict(extra)

    def _cwd(self) -> Path:
        place = self.work_tree or self.git_dir
        return place if place.is_dir() else Path("/")


def decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def z(paths: Sequence[str]) -> bytes:
    """Paths as the ``-z`` input of git."""
    return b"".join(encode(path) + b"\0" for path in paths)


def failed(verb: str, done: Done) -> GitFailed:
    lines = [line for line in done.err.splitlines() if line.strip()]
    said = "\n".join(lines[-6:]) or f"it ended with {done.code}"
    return GitFailed(
        f"git {verb} failed: {said}",
        code="GIT_FAILED",
        details={"command": verb, "exit": done.code, "stderr": done.err[-4000:]},
        next="Read git's words above; the repository is as git left it.",
    )


async def discover(path: Path) -> Repo:
    """The repository a folder belongs to. Only for attaching: everything else uses recorded folders.

    Raises GitFailed when ``path`` is not inside a repository.
    """
    git_dir, common, bare = (await _ask(path, "--git-dir", "--git-common-dir", "--is-bare-repository")).rsplit("\n", 2)
    if bare == "true":
        return Repo(Path(git_dir), None)
    top = await _ask(path, "--show-toplevel")
    return Repo(Path(git_dir), Path(top), Path(common) if common != git_dir else None)


async def _ask(path: Path, *what: str) -> str:
    options = [part for setting in CONFIG for part in ("-c", setting)]
    command = [_program(), *options, "-C", str(Path.cwd() / path), "rev-parse", "--path-format=absolute", *what]
    env = {name: os.environ[name] for name in PASSED if name in os.environ} | FIXED
    done = await _run(command, env, data=None, cwd=Path("/"), timeout=30, verb="rev-parse")
    if done.code:
        raise failed("rev-parse", done)
    return done.text


def _program() -> str:
    return _found(os.environ.get("PATH"), os.environ.get(TRUSTED_DIRS), int(time.monotonic() / JUDGED))


@functools.lru_cache(maxsize=1)
def _found(_path: str | None, _trusted: str | None, _moment: int) -> str:
    """Looked for and judged once per moment: a step of a bead asks git a dozen things."""
    found = executables.find("git")
    if found is None:
        raise Unavailable(
            "git is not installed or not on the PATH", code="GIT_MISSING", next="Install git 2.38 or newer."
        )
    return str(executables.require_trusted(found, os.environ, code="GIT_REFUSED"))


async def _run(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    data: bytes | None,
    cwd: Path,
    timeout: float,  # noqa: ASYNC109 - seconds for git
    verb: str,
) -> Done:
    fds = () if verb in NETWORK else inherited()
    return await anyio.to_thread.run_sync(lambda: _blocking(command, env, data, cwd=cwd, timeout=timeout, fds=fds))


def _blocking(
    command: Sequence[str],
    env: Mapping[str, str],
    data: bytes | None,
    *,
    cwd: Path,
    timeout: float,
    fds: tuple[int, ...],
) -> Done:
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=env,
        pass_fds=fds,
        start_new_session=True,
    ) as child:
        try:
            out, err = child.communicate(data, timeout)
        except subprocess.TimeoutExpired:
            _end(child)
            raise _slow(command, timeout) from None
    return Done(child.returncode, out, CREDENTIALS.sub(r"\1", err.decode("utf-8", "replace")))


def _end(child: subprocess.Popen[bytes]) -> None:
    """TERM first, so that git removes its lock files; the session is git's own."""
    for sign, grace in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(child.pid, sign)
            child.communicate(timeout=grace)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
        else:
            return


def _slow(command: Sequence[str], seconds: float) -> Unavailable:
    verb = next((part for part in command[1:] if not part.startswith("-") and "=" not in part), "")
    return Unavailable(
        f"git {verb} did not end within {seconds:.0f} s and was stopped",
        code="GIT_TIMEOUT",
        kept="The repository is as it was before that command.",
        next="Look for a remote, a filter or a signing program that waits for somebody, then try again.",
    )


def _locked(verb: str, met: re.Match[str], done: Done) -> Unavailable:
    return Unavailable(
        f"git {verb} found a lock that did not go away: {met.group(1) or done.err.strip()}",
        code="GIT_LOCKED",
        details={"lock": met.group(1) or ""},
        next="If no git command is running in this repository, remove that lock file and try again.",
    )
