"""Sessions are folders: started once, re-attached, ordered about, read after the end, proven gone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import Failed, Lapsed, Lost, Ran, Replied, Stopped, Why
from beadmill.domain.values import Access, Seat
from beadmill.errors import Unavailable
from beadmill.processes import procs
from beadmill.processes.folder import lock, read_json
from beadmill.processes.session import FolderSession
from beadmill.processes.sessions import Adapter
from beadmill.processes.spec import EventKind, Hold, Policy, Release, Stop
from beadmill.processes.starting import SOURCE, Programs
from tests.processes import attach_once
from tests.processes.session_world import World, until

STUBBORN = "(trap '' TERM; setsid sh -c \"trap '' TERM; touch up; sleep 300; sleep 300\" & sleep 300; sleep 300)"


def daemon(world: World, token: str, script: str, *, crash: str = "") -> subprocess.Popen[bytes]:
    testing = {"BEADMILL_TESTING": "1", "BEADMILL_CRASH": crash} if crash else {}
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), **testing}
    argv = [sys.executable, attach_once.__file__, str(world.root.parent), token, script]
    return subprocess.Popen(argv, env=env)


async def running(session: FolderSession, kind: EventKind = EventKind.TOOL) -> None:
    """Until the session shows this event."""
    async for _, event in session.events():
        if event.kind is kind:
            return


async def test_an_agent_edits_the_tree_and_its_reply_is_the_end(world: World) -> None:
    world.play({"write": {"path": "a.txt", "content": "new\n"}}, {"shell": "cat a.txt"}, {"reply": "all done"})
    end = await world.run("run/code.1/turn-1", world.task())
    assert isinstance(end, Replied)
    assert end.text == "all done"
    assert (world.tree / "a.txt").read_text() == "new\n"


async def test_events_come_in_order_and_can_be_read_again_from_any_offset(world: World) -> None:
    world.play({"say": "hello"}, {"shell": "true"}, {"reply": "done"})
    session = await world.start("t", world.task())
    seen = [(offset, event.kind) async for offset, event in session.events()]
    kinds = [kind for _, kind in seen]
    assert kinds == [
        EventKind.STARTED, EventKind.TEXT, EventKind.TOOL, EventKind.TOOL_DONE, EventKind.TEXT, EventKind.USAGE,
        EventKind.ENDED,
    ]  # fmt: skip
    assert [event.kind async for _, event in session.events(after=seen[3][0])] == kinds[4:]


async def test_a_token_is_one_session_and_its_first_work_wins(world: World) -> None:
    await world.run("t", world.shell("echo first >> log"))
    again = await world.run("t", world.shell("echo second >> log"))
    assert (world.tree / "log").read_text() == "first\n"
    assert [r.command for r in again.results] == ["echo first >> log"]


async def test_another_daemon_attaches_to_a_running_session_and_reads_its_end(world: World) -> None:
    script = "echo x >> log; while [ ! -e go ]; do sleep 0.02; done"
    session = await world.start("t", world.shell(script))
    await until((world.tree / "log").exists)
    other = await world.open().attach("t", world.shell(script), world.box)
    assert (other.live(), other.ended()) == (True, None)
    (world.tree / "go").touch()
    assert await other.wait() == await session.wait()
    assert (world.tree / "log").read_text() == "x\n"


async def test_five_daemons_at_once_start_a_session_once(world: World) -> None:
    daemons = [daemon(world, "t", "echo ran >> log") for _ in range(5)]
    codes = [await asyncio.to_thread(d.wait) for d in daemons]
    assert codes == [0] * 5
    assert (world.tree / "log").read_text() == "ran\n"


@pytest.mark.parametrize("point", ["session.spec", "session.spawned"])
async def test_a_daemon_killed_while_it_attaches_loses_nothing(world: World, point: str) -> None:
    script = "echo ran >> log"
    killed = daemon(world, "t", script, crash=point)
    assert await asyncio.to_thread(killed.wait) == -signal.SIGKILL
    ran = await world.run("t", world.shell(script))
    assert ran.ok
    assert (world.tree / "log").read_text() == "ran\n"


@pytest.mark.parametrize("point", ["runner.started", "runner.owned", "runner.spawned"])
async def test_a_runner_killed_at_any_point_is_lost_and_never_started_again(world: World, point: str) -> None:
    script = "echo ran >> log; sleep 300"
    killed = daemon(world, "t", script, crash=point)
    assert await asyncio.to_thread(killed.wait) == 0
    assert await world.run("t", world.shell(script)) == Lost()
    assert world.running("t") == set()


async def test_a_runner_killed_behind_its_end_has_ended(world: World) -> None:
    killed = daemon(world, "t", "echo ran", crash="runner.ended")
    assert await asyncio.to_thread(killed.wait) == 0
    ran = await world.run("t", world.shell("echo ran"))
    assert [r.output for r in ran.results] == ["ran\n"]


async def test_stop_sweeps_what_a_killed_runner_left_behind(world: World) -> None:
    world.play({"shell": STUBBORN}, {"reply": "never"})
    session = await world.start("t", world.task())
    await until((world.tree / "up").exists)
    os.kill(read_json(session.folder / "owner.json")["pid"], signal.SIGKILL)
    assert await session.wait() == Lost()
    assert world.running("t") != set()
    await session.stop("lost")
    assert world.running("t") == set()
    assert session.ended() == Lost()


async def test_c47_start_up_sweeps_lost_sessions_and_leaves_living_ones_alone(world: World) -> None:
    lost = await world.start("lost", world.shell("touch a; sleep 300"))
    living = await world.start("living", world.shell("touch b; sleep 300"))
    await until(lambda: (world.tree / "a").exists() and (world.tree / "b").exists())
    os.kill(read_json(lost.folder / "owner.json")["pid"], signal.SIGKILL)
    await lost.wait()
    assert await world.open().sweep({"lost", "living"}) == ("lost",)
    assert world.running("lost") == set()
    assert living.live()
    await living.stop("test ends")


POINTS = ("session.spec", "session.spawned", "runner.started", "runner.owned", "runner.spawned", "runner.ended")


@pytest.mark.parametrize("point", POINTS)
async def test_a_session_that_nobody_owns_ends_wherever_its_start_was_cut(world: World, point: str) -> None:
    killed = daemon(world, "t", "touch up; sleep 300" if point != "runner.ended" else "true", crash=point)
    await asyncio.to_thread(killed.wait)
    await world.open().sweep(set())
    session = world.sessions.find("t")
    assert session is not None
    await until(lambda: session.running() == set())
    end = session.ended()
    assert isinstance(end, Ran | Lost)
    assert await world.run("t", world.shell("touch again")) == end
    assert not (world.tree / "again").exists()


async def test_a_folder_without_its_order_is_no_session_yet(world: World) -> None:
    killed = daemon(world, "t", "touch up", crash="session.folder")
    await asyncio.to_thread(killed.wait)
    assert (await world.open().sweep(set()), world.sessions.find("t")) == ((), None)
    assert (await world.run("t", world.shell("touch up"))).ok


async def test_who_the_runner_is_stands_there_before_anything_is_started(world: World) -> None:
    killed = daemon(world, "t", "touch up", crash="runner.owned")
    await asyncio.to_thread(killed.wait)
    owner = read_json(world.sessions.folder("t") / "owner.json")
    assert (owner["token"], owner["boot"], procs.look(owner["pid"])) == ("t", procs.boot_id(), None)
    assert not (world.tree / "up").exists()


async def test_stop_ends_term_ignoring_descendants_in_sessions_of_their_own(world: World) -> None:
    world.play({"shell": STUBBORN}, {"reply": "never"})
    session = await world.start("t", world.task())
    await until((world.tree / "up").exists)
    await session.stop("canceled")
    end = session.ended()
    assert isinstance(end, Stopped)
    assert end.session.conversation != ""
    assert (session.live(), world.running("t")) == (False, set())


async def test_stop_kills_a_runner_that_does_not_listen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beadmill.processes.session.STOP_PATIENCE", 0.2)
    session = await world.start("t", world.shell("touch up; sleep 300"))
    await until((world.tree / "up").exists)
    (session.folder / "control").unlink()
    await session.stop("canceled")
    assert (session.ended(), session.live(), world.running("t")) == (Lost(), False, set())


async def test_stop_wakes_a_frozen_runner_and_is_heard(world: World) -> None:
    session = await world.start("t", world.shell("touch up; sleep 300"))
    await until((world.tree / "up").exists)
    runner = read_json(session.folder / "owner.json")["pid"]
    os.kill(runner, signal.SIGSTOP)
    await until(lambda: (found := procs.look(runner)) is not None and found.frozen)
    await session.stop("canceled")
    end = session.ended()
    assert isinstance(end, Ran)
    assert end.stopped


async def test_a_session_stopped_before_its_start_never_starts(world: World) -> None:
    killed = daemon(world, "t", "touch ran", crash="session.spec")
    await asyncio.to_thread(killed.wait)
    session = world.sessions.find("t")
    assert session is not None
    await session.stop("canceled")
    assert await world.run("t", world.shell("touch ran")) == Ran((), stopped=True)
    assert not (world.tree / "ran").exists()


async def test_a_reply_takes_background_processes_along(world: World) -> None:
    world.play({"shell": "setsid sh -c 'touch up; sleep 300; sleep 300' & while [ ! -e up ]; do sleep 0.01; done"})
    end = await world.run("t", world.task())
    assert isinstance(end, Replied)
    await until(lambda: world.running("t") == set())


async def test_a_runner_told_to_terminate_says_that_the_session_is_lost(world: World) -> None:
    world.play({"hang": True})
    session = await world.start("t", world.task())
    await running(session, EventKind.STARTED)
    os.kill(read_json(session.folder / "owner.json")["pid"], signal.SIGTERM)
    end = await session.wait()
    assert isinstance(end, Failed)
    assert (end.why, end.continuable) == (Why.LOST, True)


async def test_hold_stops_the_clock_and_never_the_process(world: World) -> None:
    world.play({"shell": "while [ ! -e go ]; do sleep 0.02; touch beat; done"}, {"reply": "done"})
    session = await world.start("t", world.task(budget=timedelta(seconds=1), idle=timedelta(seconds=1)))
    await session.order(Hold())
    held = time.monotonic()
    await until(lambda: time.monotonic() > held + 1.5)
    (world.tree / "beat").unlink()
    await until((world.tree / "beat").exists)
    (world.tree / "go").touch()
    end = await session.wait()
    assert isinstance(end, Replied)
    assert end.worked < timedelta(seconds=1)


async def test_release_lets_the_clock_run_out(world: World) -> None:
    world.play({"hang": True})
    session = await world.start("t", world.task(budget=timedelta(seconds=0.5)))
    await session.order(Hold())
    await session.order(Release())
    end = await session.wait()
    assert isinstance(end, Lapsed)
    assert (end.idle, end.worked >= timedelta(seconds=0.5)) == (False, True)


async def test_orders_reach_a_session_in_a_very_deep_folder(world: World) -> None:
    world.root = world.root / ("deep" * 20) / ("deeper" * 20)
    world.root.mkdir(parents=True)
    world.sessions = world.open()
    world.play({"hang": True})
    session = await world.start("a/long token/" + "x" * 200, world.task())
    await session.order(Stop())
    assert isinstance(await session.wait(), Stopped)


async def test_a_broken_order_is_refused_and_the_session_goes_on(world: World) -> None:
    session = await world.start("t", world.shell("while [ ! -e go ]; do sleep 0.02; done"))
    await until((session.folder / "control").exists)
    handle = os.open(session.folder, os.O_RDONLY)
    reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{handle}/control")
    os.close(handle)
    writer.write(b'{"type": "Explode"}\n')
    answer = json.loads(await reader.readline())
    writer.close()
    assert answer == {"ok": False, "error": "unknown type 'Explode'"}
    (world.tree / "go").touch()
    end = await session.wait()
    assert isinstance(end, Ran)
    assert end.ok


async def test_orders_to_an_ended_session_are_ignored(world: World) -> None:
    session = await world.start("t", world.shell("true"))
    end = await session.wait()
    await session.order(Stop())
    await session.stop("late")
    assert session.ended() == end


async def test_without_access_an_agent_works_in_an_empty_folder(world: World) -> None:
    world.play({"shell": "true"}, {"reply": "done"})
    (world.tree / "secret.txt").touch()
    session = await world.start("t", world.task(access=Access.NONE))
    await session.wait()
    done = [e.data async for _, e in session.events() if e.kind is EventKind.TOOL_DONE]
    assert [(d["ok"], d["output"]) for d in done] == [(False, "this session may not edit")]
    assert list((world.workspace / "tmp").iterdir()) == []


async def test_an_unknown_agent_is_named_before_anything_starts(world: World) -> None:
    task = replace(world.task(), seat=Seat("nobody"))
    with pytest.raises(Unavailable, match="there is no agent 'nobody'"):
        await world.start("t", task)
    assert world.sessions.find("t") is None


async def test_an_adapter_that_breaks_is_a_failure_and_no_lost_session(world: World) -> None:
    world.adapters["scripted"] = Adapter("beadmill.agents.scripted:ScriptedStream", {})
    world.sessions = world.open()
    end = await world.run("t", world.task())
    assert isinstance(end, Failed)
    assert end.why is Why.INTERNAL
    assert end.message.startswith("AttributeError")


async def test_an_adapter_that_cannot_be_loaded_is_a_failure(world: World) -> None:
    world.adapters["scripted"] = Adapter("beadmill.agents.nothing:Agent", {})
    world.sessions = world.open()
    end = await world.run("t", world.task())
    assert isinstance(end, Failed)
    assert end.message.startswith("beadmill.agents.nothing:Agent cannot be loaded")


async def test_a_policy_the_sandbox_cannot_keep_runs_nothing(world: World) -> None:
    world.box = replace(world.box, policy=Policy(network="off"))
    ran = await world.run("t", world.shell("touch ran"))
    assert [(r.cannot_start, r.exit) for r in ran.results] == [(True, None)]
    assert not (world.tree / "ran").exists()


async def test_a_runner_that_cannot_start_says_why(world: World) -> None:
    world.starter = Programs("raise SystemExit('no luck today')")
    world.sessions = world.open()
    with pytest.raises(Unavailable, match="no luck today"):
        await world.start("t", world.shell("true"))


async def test_probing_a_starting_session_does_not_keep_it_from_starting(world: World) -> None:
    folder = world.sessions.folder("t")
    folder.mkdir(parents=True)
    with lock(folder, shared=True):
        starting = asyncio.create_task(world.start("t", world.shell("echo ran >> log")))
        await until((folder / "spec.json").exists)
    end = await (await starting).wait()
    assert isinstance(end, Ran)
    assert end.ok


async def test_files_of_a_session_are_for_its_owner_only(world: World) -> None:
    session = await world.start("t", world.task())
    await session.wait()
    modes = {p.name: p.stat().st_mode & 0o077 for p in (session.folder, *session.folder.iterdir())}
    assert set(modes.values()) == {0}


async def test_c47_a_reused_pid_is_never_signalled() -> None:
    child = await asyncio.create_subprocess_exec("sleep", "300")
    proc = procs.look(child.pid)
    assert proc is not None
    procs.send(replace(proc, start=proc.start - 1), signal.SIGKILL)
    assert procs.look(child.pid) == proc
    procs.send(proc, signal.SIGKILL)
    assert await child.wait() == -signal.SIGKILL


def test_a_session_folder_is_named_after_its_token(world: World) -> None:
    path: Path = world.sessions.folder("run-1/prd.2/seat 1/draft#0/turn-1")
    assert path.name.startswith("run-1-prd.2-seat-1-draft-0-turn-1-")
    assert len(path.name) < 110


async def test_known_secrets_leave_the_reply_and_example_keys_stay(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "correct-horse-battery")
    example = "ghp_" + "A" * 36
    world.adapters["scripted"] = replace(world.adapters["scripted"], env=("MODEL_API_KEY",))
    world.sessions = world.open()
    world.play({"reply": f"set correct-horse-battery, for instance {example}\0"})
    end = await world.run("t", world.task())
    assert isinstance(end, Replied)
    assert end.text == f"set [redacted], for instance {example}\ufffd"


async def test_a_session_that_cannot_be_proven_stopped_names_who_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await world.start("t", world.shell("touch up; sleep 300"))
    await until((world.tree / "up").exists)
    monkeypatch.setattr("beadmill.processes.procs.KILL_GRACE", 0.1)
    monkeypatch.setattr("beadmill.processes.procs.TERM_GRACE", 0.1)
    monkeypatch.setattr("beadmill.processes.session.STOP_PATIENCE", 0.1)
    monkeypatch.setattr("beadmill.processes.procs.send", lambda *_: None)
    os.kill(read_json(session.folder / "owner.json")["pid"], signal.SIGKILL)
    await session.wait()
    with pytest.raises(Unavailable, match=r"session t is not stopped: still running .*\(sh\)") as alive:
        await session.stop("canceled")
    named = {(p["session"], p["pid"], p["command"]) for p in alive.value.details["processes"]}
    assert named == {("t", p.pid, p.command) for p in world.running("t")}
    monkeypatch.undo()
    await session.stop("again")


async def test_the_end_says_what_the_session_used_of_the_machine(world: World) -> None:
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    await world.run("t", world.batch(CommandSpec(mode="process", program=sys.executable, args=("-c", spin))))
    session = world.sessions.find("t")
    assert session is not None
    used = json.loads((session.folder / "end.json").read_text())["used"]
    assert 0.3 <= used["agent_cpu_s"] < 3
    assert min(used["own_peak_mb"], used["agent_peak_mb"]) > 1
