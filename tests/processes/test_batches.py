"""Batches: exit codes, deadlines, bounded and scrubbed output, a closed stdin, a clean environment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import Ran
from beadmill.processes.spec import EventKind, Stop
from tests.processes.session_world import World, until


async def test_a_batch_stops_at_the_first_failure(world: World) -> None:
    ran = await world.run("b", world.shell("echo one; echo two >&2", "exit 3", "echo never"))
    assert [(r.exit, r.output) for r in ran.results] == [(0, "one\ntwo\n"), (3, "")]
    assert not ran.ok


async def test_a_batch_may_go_on_behind_a_failure(world: World) -> None:
    ran = await world.run("b", world.shell("exit 3", "echo more", stop=False))
    assert [(r.exit, r.output) for r in ran.results] == [(3, ""), (0, "more\n")]


async def test_commands_show_in_the_events(world: World) -> None:
    session = await world.start("b", world.shell("echo hi"))
    events = [e async for _, e in session.events()]
    assert [e.kind for e in events] == [EventKind.COMMAND, EventKind.COMMAND_DONE, EventKind.ENDED]
    assert events[0].data == {"n": 1, "command": "echo hi"}
    assert (events[1].data["exit"], events[1].data["output"]) == (0, "hi\n")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (CommandSpec(program="no-such-program"), "cannot start: 'no-such-program' is not there or not executable"),
        (CommandSpec(program="./plain.txt"), "cannot start: './plain.txt' is not there or not executable"),
        (CommandSpec(program="true", cwd="nowhere"), "cannot start: there is no folder 'nowhere'"),
        (CommandSpec(program="true", cwd="way-out"), "cannot start: the folder 'way-out' leads out of the tree"),
        (CommandSpec(program="echo", args=("a\0b",)), "cannot start: embedded null byte"),
    ],
)
async def test_a_command_that_cannot_start_is_no_failed_test(world: World, spec: CommandSpec, says: str) -> None:
    (world.tree / "plain.txt").write_text("not a program")
    (world.tree / "way-out").symlink_to("/usr")
    ran = await world.run("b", world.batch(spec))
    assert [(r.exit, r.cannot_start, r.timed_out, r.output) for r in ran.results] == [(None, True, False, says)]


async def test_a_program_runs_in_its_folder_without_a_shell(world: World) -> None:
    (world.tree / "sub").mkdir()
    ran = await world.run("b", world.batch(CommandSpec(program="sh", args=("-c", "pwd; echo $0"), cwd="sub")))
    assert ran.results[0].output == f"{world.tree / 'sub'}\nsh\n"


async def test_a_deadline_ends_the_whole_tree_and_keeps_the_output(world: World) -> None:
    script = "echo begun; (trap '' TERM; setsid sh -c \"trap '' TERM; sleep 300; sleep 300\" & sleep 300; sleep 300)"
    spec = CommandSpec(mode="shell", script=script, timeout_ms=300)
    session = await world.start("b", world.batch(spec, CommandSpec(program="true")))
    ran = await session.wait()
    assert isinstance(ran, Ran)
    first_lines = [r.output.splitlines()[0] for r in ran.results]  # a shell may add that its child was killed
    assert ([(r.exit, r.timed_out) for r in ran.results], first_lines) == ([(None, True)], ["begun"])
    await until(lambda: world.running("b") == set())


async def test_a_server_left_in_the_background_serves_later_commands_and_goes_with_the_batch(world: World) -> None:
    server = "(while [ ! -e stop ]; do touch alive; sleep 0.02; done; sleep 300) & echo started"
    ran = await world.run(
        "b", world.shell(server, "rm -f alive; while [ ! -e alive ]; do sleep 0.02; done; touch stop")
    )
    assert [r.exit for r in ran.results] == [0, 0]
    await until(lambda: world.running("b") == set())


async def test_a_stopped_batch_keeps_what_it_had_done(world: World) -> None:
    session = await world.start("b", world.shell("echo one", "touch up; sleep 300"))
    await until((world.tree / "up").exists)
    await session.order(Stop())
    ran = await session.wait()
    assert isinstance(ran, Ran)
    assert (ran.stopped, ran.ok, [r.output for r in ran.results]) == (True, False, ["one\n"])


async def test_a_flood_of_output_is_bounded_and_its_end_is_kept(world: World) -> None:
    script = "yes 'a line of output' | head -c 60000000; echo; echo the end"
    session = await world.start("b", world.shell(script))
    ran = await session.wait()
    assert isinstance(ran, Ran)
    (result,) = ran.results
    assert (result.exit, len(result.output.encode()) <= 65_536, result.output.endswith("\nthe end\n")) == (
        0,
        True,
        True,
    )
    assert 16 * 2**20 <= (session.folder / "output-1.log").stat().st_size < 16 * 2**20 + 100


async def test_bytes_that_are_no_text_become_replacement_signs(world: World) -> None:
    ran = await world.run("b", world.shell(r"printf 'a\377\000b\n'"))
    assert ran.results[0].output == "a\ufffd\ufffdb\n"


async def test_stdin_is_closed(world: World) -> None:
    ran = await world.run("b", world.shell("cat; echo end"))
    assert ran.results[0].output == "end\n"


async def test_c39_commands_see_the_allow_list_and_nothing_of_ours(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "BEADMILL_TOKEN", "GITHUB_TOKEN", "PYTHONPATH", "BEADMILL_CRASH"):
        monkeypatch.setenv(name, "should-not-be-seen")
    monkeypatch.setenv("LC_NUMERIC", "C")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    batch = replace(world.shell("env"), env={"PROJECT": "yes"})
    ran = await world.run("b", batch)
    seen = dict(line.split("=", 1) for line in ran.results[0].output.splitlines())
    assert "should-not-be-seen" not in seen.values()
    ours = {k: seen[k] for k in ("HOME", "TMPDIR", "BEADMILL_SESSION", "PROJECT", "PATH", "LC_NUMERIC")}
    assert ours == {
        "HOME": str(world.workspace / "home"),
        "TMPDIR": str(world.workspace / "tmp"),
        "BEADMILL_SESSION": "b",
        "PROJECT": "yes",
        "PATH": "/usr/bin:/bin",
        "LC_NUMERIC": "C",
    }


async def test_files_of_commands_have_the_usual_rights(world: World) -> None:
    await world.run("b", world.shell("touch made"))
    assert (world.tree / "made").stat().st_mode & 0o777 == 0o644


async def test_a_secret_reaches_neither_the_result_nor_any_file_of_the_session(world: World) -> None:
    secret = "correct-horse-battery"
    spec = CommandSpec(mode="shell", script='echo "it is $DB_PASSWORD."', env={"DB_PASSWORD": secret})
    session = await world.start("b", world.batch(spec))
    ran = await session.wait()
    assert isinstance(ran, Ran)
    assert ran.results[0].output == "it is [redacted].\n"
    told = {p.name for p in session.folder.iterdir() if p.is_file() and secret in p.read_text()}
    assert told == {"spec.json"}  # the order itself, 0600


async def test_an_empty_batch_ends_at_once(world: World) -> None:
    assert await world.run("b", world.batch()) == Ran(())
