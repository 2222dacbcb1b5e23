"""A container of podman, or of docker: programs of an image or of this machine, and one workspace. Standard library only:
the runner loads it.

Without an image (podman alone) its root is what bubblewrap shows: the system's programs, toolchains, the adapter's
program, read-only. With one, the image is the system, and the workspace, the adapter's program and its sign-in are all
that comes from here. Not there in either: homes, the data home, other workspaces, other processes.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import secrets
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from beadmill.errors import BeadmillError, Unavailable
from beadmill.processes import door, warden
from beadmill.processes.box import Health, Launch
from beadmill.processes.environment import MARK_VARIABLE, SESSION_VARIABLE
from beadmill.processes.spec import Policy
from beadmill.workspaces.sandboxes import _engine, _rootfs
from beadmill.workspaces.sandboxes._engine import Engine
from beadmill.workspaces.sandboxes._left import place_of, removed
from beadmill.workspaces.sandboxes._mounts import Mount, Mounts, own, resolver, system, walk
from beadmill.workspaces.sandboxes._places import refused, require, show
from beadmill.workspaces.sandboxes._toolchains import show_path, show_program

NOTHING: Final = Path("/dev/null")  # lies over what is not to be read; here that is a file that nobody may open
# The first process: ours, so that the mark of the session stays in its environment. It buries whom others leave.
INIT: Final = (
    'unset HOSTNAME HOME TERM container; eval "${BEADMILL_BOX-$(cat <&3)}"; exec 3<&-; unset BEADMILL_BOX OLDPWD; '
    '(exec "$@" 2>&4 4>&-); exit $?'  # its own word for a signal is nobody's output
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ContainerBox:
    isolates = True

    def __init__(self, engine: Engine, workspace: Path, mounts: Mounts, policy: Policy, path: str = "") -> None:
        """``path`` is the image's own PATH."""
        self._engine, self._workspace, self._mounts, self._policy, self._path = engine, workspace, mounts, policy, path
        self.foreign = bool(policy.image)
        self._places: dict[Path, itertools.count[int]] = {}

    def wrap(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], program: Path | None = None) -> Launch:
        """Raises FileNotFoundError for a program that is not there at all; an image is not asked.

        What is no name of a shell's variable does not come along.
        """
        missing = shutil.which(argv[0], path=env.get("PATH")) is None and not (cwd / argv[0]).is_file()
        if missing and not self.foreign:
            raise FileNotFoundError(f"no such program: {argv[0]}")
        if program is not None:
            show_program(self._mounts, program, hidden=self._policy.hidden)
        inside, env = [*argv], dict(env)
        if self.foreign:
            inside[0] = str(walk(program)[0]) if program is not None else inside[0]
            cwd, env = walk(cwd)[0], self._of_image(env)
        if self._policy.door is not None:
            knock = door.knock()
            inside = [*(("python3", *knock[1:]) if self.foreign else knock), *inside]
            env = door.environment(env, self._policy)
        return self._launch(inside, cwd, env)

    def _launch(self, inside: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Launch:
        mark = env.get(MARK_VARIABLE) or self._policy.network + secrets.token_hex(8)
        place = place_of(self._workspace, mark)
        name = f"{place.name}-{next(self._places.setdefault(place, itertools.count(1)))}"
        hidden = place / "nothing"
        mounts = [replace(m, source=hidden) if m.source == NOTHING else m for m in self._all_mounts()]
        mounts = _rootfs.settled(mounts)
        late = self._lay_out(place, mounts)
        podman = self._engine.name == "podman"
        run = [
            *self._engine.run(), "--name", name, "--workdir", "/", *self._security(place),
            "--network", "host" if self._policy.network == "on" else "none",
            *_engine.passed(env, (SESSION_VARIABLE, MARK_VARIABLE)), *([] if podman else ["--env", warden.BOX]),
            *_rootfs.arguments(mounts, podman=podman), *self._root(place), "-c", INIT,
        ]  # fmt: skip
        code = _shell(inside, cwd, env, late) + ("" if podman else "\nexec 4>&2 2>/dev/null")
        outside = [
            sys.executable, "-I", "-S", warden.__file__, str(os.getpid()), str(place / name),
            json.dumps(self._engine.remove(name)), "file" if podman else "environment",
        ]  # fmt: skip
        return Launch((*outside, *run), Path("/"), {**_engine.environment(), warden.BOX: code})

    def _lay_out(self, place: Path, mounts: Sequence[Mount]) -> list[tuple[Path, str]]:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        (place / "nothing").touch(mode=0)
        if self._engine.name == "podman" and (text := _rootfs.seccomp()):
            (place / "seccomp.json").write_text(text)
        if self.foreign:
            return []
        return _rootfs.build(place / "root", mounts, self._mounts.links())

    def _security(self, place: Path) -> list[str]:
        profile = place / "seccomp.json"
        return ["--security-opt", f"seccomp={profile}"] if profile.exists() else []

    def _root(self, place: Path) -> list[str]:
        return [self._policy.image] if self.foreign else ["--passwd=false", "--rootfs", str(place / "root")]

    def _all_mounts(self) -> list[Mount]:
        """An image has no links of ours: what lies in the workspace is there by both of its names."""
        found, real = self._mounts.mounts(), walk(self._workspace)[0]
        if not self.foreign or real == self._workspace:
            return found
        again = [m for m in found if m.target.is_relative_to(real)]
        return [*found, *(replace(m, target=self._workspace / m.target.relative_to(real)) for m in again)]

    def _of_image(self, env: Mapping[str, str]) -> dict[str, str]:
        """Programs are the image's, but for those that the workspace has itself."""
        mine = [p for p in env.get("PATH", "").split(os.pathsep) if Path(p).is_relative_to(self._workspace)]
        kept = {k: v for k, v in env.items() if k not in _CERTIFICATES or self._mounts.shows(Path(v))}
        return {**kept, "PATH": os.pathsep.join([*mine, self._path or _PATH])}

    async def close(self) -> None:
        """Removes what a killed warden could not. Raises Unavailable with the names of what stays."""
        for place in tuple(self._places):
            if left := await removed(self._engine, place):
                raise Unavailable(f"these containers could not be removed: {', '.join(left)}", code="STILL_RUNNING")
            del self._places[place]


class ContainerSandbox:
    name = "container"
    networks = frozenset({"on", "off", "allow-list"})

    async def probe(self, image: str = "") -> Health:
        """Really runs a container, of ``image`` when it is not empty."""
        try:
            engine = await _engine.find()
            with tempfile.TemporaryDirectory(prefix="beadmill-probe-") as place:
                code, err = await _try(engine, Path(place), image)
        except (BeadmillError, OSError) as error:
            said = error if isinstance(error, OSError) else f"{error.message}; {error.next}".rstrip("; ")
            return Health(ok=False, message=f"no container: {said}")
        if code != 0:
            return Health(ok=False, message=f"{engine.name} cannot run a container here: {err.strip()[-300:]}")
        shown = f"of the image {image}" if image else "of the system's own programs"
        how = "rootless" if engine.rootless else "as root"
        return Health(
            ok=True,
            message=f"{engine.name} {engine.version}, {how}: agents and commands work in a container {shown}, see their "
            "workspace and nothing else of yours",
            detail={"isolation": engine.name, "version": engine.version, "image": image or "none", "rights": how},
        )

    async def open(self, workspace: Path, policy: Policy) -> ContainerBox:
        """Raises Unavailable, and Refused for a podman or docker that others may change."""
        require(workspace)
        engine = await _engine.find()
        mounts, path = Mounts(), ""
        if policy.image:
            path = await engine.path_in(policy.image)
            own(mounts)
        else:
            _without_image(engine)
            system(mounts)
            if policy.network == "on":
                resolver(mounts)
            show_path(mounts, os.environ.get("PATH", os.defpath), hidden=policy.hidden)
        if policy.door is not None:
            mounts.lay(door.INSIDE, policy.door)
            if not policy.image:
                show_program(mounts, Path(sys.executable), hidden=policy.hidden)
        show(mounts, workspace, policy)
        return ContainerBox(engine, workspace, mounts, policy, path)

    async def sweep(self, workspace: Path, mark: str) -> tuple[str, ...]:
        """Removes the containers of a session whose runner is gone, by name; returns those that stay."""
        place = place_of(workspace, mark)
        if not place.is_dir():
            return ()
        return await removed(await _engine.find(), place)


async def _try(engine: Engine, place: Path, image: str) -> tuple[int, str]:
    """Exit code and stderr of a command that does nothing."""
    name, mounts = f"beadmill-probe-{secrets.token_hex(8)}", list[Mount]()
    if image:
        await engine.path_in(image)
        root = [image]
    else:
        _without_image(engine)
        shown = Mounts()
        system(shown)
        mounts = _rootfs.settled(shown.mounts())
        _rootfs.build(place, mounts, shown.links())
        root = ["--passwd=false", "--rootfs", str(place)]
    podman = engine.name == "podman"
    how = ["--name", name, "--network", "none", *_rootfs.arguments(mounts, podman=podman), *root]
    run = [part for part in engine.run()[len(engine.cli()) :] if part not in ("--preserve-fds", "2")]
    try:
        code, _, err = await engine.ask(*run, *how, "-c", "exit 0")
    except Unavailable:
        await engine.ask(*engine.remove(name)[len(engine.cli()) :])
        raise
    return code, err


def _without_image(engine: Engine) -> None:
    if engine.name == "docker":
        raise refused("docker needs an image", "Name one by the setting sandbox_image, or install podman.")


def _shell(argv: Sequence[str], cwd: Path, env: Mapping[str, str], links: Sequence[tuple[Path, str]]) -> str:
    """For the first process: its command with environment and folder, and links that lie in folders of the box's own.
    None of it is in a record that podman keeps, or in a command line that others may read."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in env.items() if _NAME.fullmatch(name)]
    for path, text in links:
        where, to = shlex.quote(str(path)), shlex.quote(text)
        lines.append(f"mkdir -p {shlex.quote(str(path.parent))} && ln -sn {to} {where} 2>/dev/null || :")
    lines.append(f"cd {shlex.quote(str(cwd))} || exit 126")
    lines.append(f"set -- {shlex.join(argv)}")
    return "\n".join(lines)
