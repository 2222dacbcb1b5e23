"""What only the container sandbox has: its engine, its images, and what must not stay of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from beadmill.errors import Unavailable
from beadmill.processes import procs, warden
from beadmill.processes.folder import read_json
from beadmill.processes.spec import Policy
from beadmill.workspaces.sandboxes import _engine, choice
from beadmill.workspaces.sandboxes._left import place_of
from beadmill.workspaces.sandboxes._mounts import Mount
from beadmill.workspaces.sandboxes._rootfs import arguments, settled
from tests.processes.session_world import World, until
from tests.workspaces import images
from tests.workspaces.sandbox_place import Place

IMAGE = f"localhost/beadmill-test:{os.getpid()}"
DEAF = "trap '' TERM; (trap '' TERM; setsid sh -c 'while :; do sleep 1; done' &) ; touch up; sleep 300"


@pytest.fixture
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="beadmill-sandbox-") as root:
        made = Place(Path(root))
        made.make()
        yield made


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    images.make(IMAGE)
    yield IMAGE
    images.remove(IMAGE)


@pytest.fixture
def contained(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, sandbox="container")
    yield made
    made.close()


def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    """A podman or docker that is the only one here."""
    (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BEADMILL_TRUSTED_EXECUTABLE_DIRS", str(tmp_path))


def containers(mark: str, world: World) -> list[str]:
    found = subprocess.run(["podman", "ps", "-a", "--format", "{{.Names}}"], check=True, capture_output=True, text=True)
    return [name for name in found.stdout.split() if name.startswith(place_of(world.workspace, mark).name)]


# --- what is here


async def test_neither_podman_nor_docker_is_said_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    health = await choice.load("container").probe()
    assert (health.ok, health.message) == (
        False,
        f"no container: neither podman nor docker was found on the PATH; {_engine.INSTALL}",
    )


async def test_a_docker_without_its_daemon_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, "docker", 'echo "Cannot connect to the Docker daemon" >&2; exit 1')
    health = await choice.load("container").probe("any")
    assert (health.ok, health.message) == (
        False,
        "no container: docker is here and its daemon does not answer: Cannot connect to the Docker daemon; start it, or "
        + _engine.INSTALL,
    )


async def test_docker_asks_for_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, "docker", """echo '["27.0",["name=seccomp"]]'""")
    health = await choice.load("container").probe()
    assert health.message == (
        "no container: docker needs an image; Name one by the setting sandbox_image, or install podman."
    )


async def test_a_podman_of_old_is_named_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, "podman", "echo podman version 3.4.4")
    health = await choice.load("container").probe()
    assert (health.ok, "podman 3.4.4 is too old" in health.message) == (False, True)


async def test_a_podman_that_others_may_change_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "podman").write_text("#!/bin/sh\n")
    (tmp_path / "podman").chmod(0o777)
    monkeypatch.setenv("PATH", str(tmp_path))
    health = await choice.load("container").probe()
    assert (health.ok, "everybody may write" in health.message) == (False, True)


@pytest.mark.container
async def test_c90_an_image_that_is_absent_is_named_with_how_to_load_it() -> None:
    health = await choice.load("container").probe("example.invalid/tools:1")
    assert health.ok is False
    assert health.message == (
        "no container: the image example.invalid/tools:1 is not on this machine; load it with `podman load -i <file>`, or "
        "`podman pull example.invalid/tools:1` where its registry is in reach; or name another by the setting sandbox_image"
    )


async def test_c90_an_engine_that_does_not_answer_is_waited_for_in_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(
        tmp_path, monkeypatch, "podman", '[ "$1" = --version ] && echo podman version 5.0.0 && exit; exec /bin/sleep 60'
    )
    monkeypatch.setattr(_engine, "PATIENCE", 0.3)
    begun = time.monotonic()
    health = await choice.load("container").probe("tools:1")
    assert (health.ok, "gave no answer in 0.3 s" in health.message, time.monotonic() - begun < 10) == (
        False,
        True,
        True,
    )


@pytest.mark.container
async def test_auto_is_a_container_where_bubblewrap_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    podman, runc = tmp_path / "podman", tmp_path / "runc"
    for link in (podman, runc):
        link.symlink_to(f"/usr/bin/{link.name}")
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = await choice.choose("auto", "off")
    assert (chosen.name, chosen.why) == ("container", "")


# --- an image


@pytest.mark.container
def test_in_an_image_programs_are_the_image_s_and_the_work_is_ours(place: Place, image: str) -> None:
    script = f"cat {images.MADE} readme; echo $OF_IMAGE; ls /bin; echo t >made; ls -A {place.data} {place.home}"
    done = place.shell(script, sandbox="container", policy=Policy(image=image, hidden=(place.data,)))
    assert done.out.split() == ["yes", "hello", "1", *sorted(images.PROGRAMS), f"{place.data}:", "workspaces"]
    assert (place.tree / "made").read_text() == "t\n"


@pytest.mark.container
async def test_an_image_that_went_away_starts_nothing(place: Place) -> None:
    with pytest.raises(Unavailable) as caught:
        await choice.load("container").open(place.workspace, Policy(image="example.invalid/tools:1"))
    assert caught.value.code == "SANDBOX_IMAGE"


@pytest.mark.container
async def test_a_batch_runs_what_only_the_image_has(contained: World, image: str) -> None:
    contained.box = replace(contained.box, policy=Policy(image=image))
    ran = await contained.run("t", contained.shell(f"cat {images.MADE}"))
    assert [(r.exit, r.output) for r in ran.results] == [(0, "yes\n")]


DOCKER = """[ "$1" = info ] && echo '["27.0",[]]' && exit
shift 2; verb=$1; shift
[ $verb != run ] || set -- --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 "$@"
PATH={path} exec podman --log-level fatal {runtime} $verb "$@"
"""


@pytest.mark.container
async def test_docker_is_told_what_it_understands(
    place: Place, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What docker has no flag for is done in another way. podman takes the rest in its place: no daemon is here."""
    runtime = " ".join(_engine._runtime())
    fake(tmp_path, monkeypatch, "docker", DOCKER.format(path=os.environ["PATH"], runtime=runtime))
    box = await choice.load("container").open(place.workspace, Policy(image=image))
    script = 'echo "$A"; id -u; cat; echo err >&2; exit 7'
    launch = box.wrap(["/bin/sh", "-c", script], cwd=place.tree, env={"A": "it's"})
    how = {"env": dict(launch.env), "input": "said", "capture_output": True, "text": True}
    done = await asyncio.to_thread(lambda: subprocess.run(launch.argv, check=False, **how))  # type: ignore[call-overload]
    await box.close()
    assert (done.returncode, done.stdout, done.stderr) == (7, f"it's\n{os.getuid()}\nsaid", "err\n")


# --- what podman is told


@pytest.mark.container
async def test_nothing_of_an_agent_s_environment_reaches_podman_or_a_command_line(place: Place) -> None:
    box = await choice.load("container").open(place.workspace, Policy())
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(place.workspace),
        "CONTAINERS_CONF": "/evil",
        "LD_PRELOAD": "/evil",
        "KEY": "s3",
    }
    launch = box.wrap(["/bin/sh", "-c", "echo s3"], cwd=place.tree, env=env)
    await box.close()
    assert [part for part in launch.argv if "s3" in part or "/evil" in part] == []
    told = {name: value for name, value in launch.env.items() if name != warden.BOX}
    assert told == {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}


def test_a_later_mount_hides_what_lies_below_it() -> None:
    a, below, over = Mount(Path("/a/b"), Path("/x")), Mount(Path("/a/b/c"), Path("/y"), write=True), Mount(Path("/a"))
    assert settled([a, below, over]) == [over]
    assert settled([over, below, a]) == [over, a]


def test_a_path_with_a_comma_is_one_field_of_its_mount() -> None:
    mounts = [Mount(Path('/a,b"'), Path("/c"))]
    assert arguments(mounts, podman=True) == ["--mount", 'type=bind,source=/c,"target=/a,b""",readonly']


# --- what must not stay


@pytest.mark.container
async def test_after_a_runner_and_its_warden_were_killed_nothing_starts_before_the_container_is_gone(
    contained: World,
) -> None:
    session = await contained.start("t", contained.shell(DEAF))
    await until((contained.tree / "up").exists)
    runner = read_json(session.folder / "owner.json")["pid"]
    os.kill(runner, signal.SIGSTOP)
    for proc in procs.below((runner,), procs.table()):
        if proc.parent == runner:
            os.kill(proc.pid, signal.SIGKILL)
    os.kill(runner, signal.SIGKILL)
    await until(lambda: not session.live())
    assert containers(session.mark, contained) != []
    again = await contained.start("t", contained.shell("true"))
    assert (again.ended() is not None, contained.running("t"), containers(session.mark, contained)) == (True, set(), [])


async def test_a_container_that_will_not_go_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, "podman", '[ "$1" = --version ] && echo podman version 5.0.0 && exit; exit 1')
    place = place_of(tmp_path, "mark")
    place.mkdir(parents=True)
    (place / f"{place.name}-1").touch()
    sandbox = choice.load("container")
    assert await sandbox.sweep(tmp_path, "mark") == (f"{place.name}-1",)
    assert await sandbox.sweep(tmp_path, "another") == ()
