"""Known failures, deviations, red on base and regressions as pure verdicts."""

from __future__ import annotations

import pytest

from beadmill.artifacts.beads import ReplacedCommand
from beadmill.artifacts.setup import CommandRun
from beadmill.domain.command import CommandSpec
from beadmill.domain.ended import CommandResult
from beadmill.proof import checks, red
from beadmill.proof.failures import failing_tests, findings, missing_code, same_failure
from beadmill.proof.noise import meant
from beadmill.proof.regress import regressions
from beadmill.proof.runs import told

A, B = CommandSpec(program="a"), CommandSpec(program="b")


def ran(exit_code: int | None, output: str = "", **more: bool) -> CommandResult:
    return CommandResult("a", exit_code, 0.1, output, **more)


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("FAILED tests/test_a.py::test_x[a b] - assert 1 == 2", ("tests/test_a.py::test_x[a b]",)),
        ("tests/test_a.py::test_x FAILED   [ 50%]", ("tests/test_a.py::test_x",)),
        ("FAIL: test_x (tests.test_a.T.test_x)\n\nFAILED (failures=1)", ("test_x (tests.test_a.T.test_x)",)),
        ("ERROR: test_a (unittest.loader._FailedTest.test_a)\nFAILED (errors=1)", ()),
        ("  ✕ greets people (12 ms)\n  ✓ other (1 ms)", ("greets people",)),
        ("\x1b[31m × adds 3ms\x1b[0m", ("adds",)),
        ("not ok 3 - parses # time=1ms", ("parses",)),
        ("--- FAIL: TestAdd (0.00s)\n    --- FAIL: TestAdd/neg (0.00s)", ("TestAdd", "TestAdd/neg")),
        ("AppTest > greets() FAILED", ("AppTest > greets()",)),
        ("[ERROR]   AppTest.greets:12 expected: <1> but was: <2>", ("AppTest.greets",)),
        ("everything is fine", ()),
    ],
)
def test_names_of_failed_tests_are_read_per_framework(output: str, names: tuple[str, ...]) -> None:
    assert failing_tests(output) == names


@pytest.mark.parametrize(
    "output", ["ModuleNotFoundError: No module named 'x'", "./a.go:3: undefined: Greet", "[build failed]"]
)
def test_missing_code_is_told_from_a_failing_test(output: str) -> None:
    assert missing_code(output)
    assert not missing_code("AssertionError: 1 != 2")


ONE, TWO = "FAILED t.py::one - x", "FAILED t.py::one - y\nFAILED t.py::two - z"


@pytest.mark.parametrize(
    ("now", "then", "same"),
    [
        (ran(1, ONE), ran(1, TWO), True),
        (ran(1, TWO), ran(1, ONE), False),
        (ran(1, "took 1.2s at /tmp/a1"), ran(1, "took 3.4s at /tmp/b2"), True),
        (ran(1, "left"), ran(1, "right"), False),
        (ran(1), ran(2), False),
        (ran(0), ran(1), False),
        (ran(1), ran(0), False),
        (ran(127, "x"), ran(127, "y"), True),
        (ran(None, cannot_start=True), ran(1), False),
        (ran(None, timed_out=True), ran(None), False),
    ],
)
def test_a_failure_is_known_only_when_nothing_new_fails(now: CommandResult, then: CommandResult, *, same: bool) -> None:
    assert same_failure(now, then) is same


def replaced(original: CommandSpec = A) -> ReplacedCommand:
    return ReplacedCommand(original=original, replacement=B, reason="wrong")


def test_a_command_that_cannot_start_is_replaced() -> None:
    found = checks.sort((A,), (ran(127),), {}, (replaced(),))
    assert (found.failing, dict(found.replacements), found.deviations[0].because) == ((), {0: B}, checks.MISSING)


def test_a_command_that_fails_as_before_may_be_replaced() -> None:
    found = checks.sort((A,), (ran(1, "x"),), {0: ran(1, "x")}, (replaced(),))
    assert (dict(found.replacements), found.known, found.deviations[0].because) == ({0: B}, (), checks.SAME)


def test_a_replacement_for_an_own_failure_is_refused() -> None:
    found = checks.sort((A,), (ran(1, "x"),), {0: ran(0)}, (replaced(),))
    assert (found.failing, dict(found.replacements), found.deviations[0].accepted) == ((0,), {}, False)


def test_a_proposal_for_a_foreign_command_is_refused() -> None:
    found = checks.sort((A,), (ran(0),), {}, (replaced(B),))
    assert (found.failing, [d.accepted for d in found.deviations]) == ((), [False])


def test_a_missing_program_without_a_replacement_fails_even_when_it_always_did() -> None:
    assert checks.sort((A,), (ran(127),), {0: ran(127)}, ()).failing == (0,)


def test_commands_that_did_not_run_are_failing() -> None:
    assert checks.sort((A, B), (ran(0),), {}, ()).failing == (1,)


@pytest.mark.parametrize(
    ("results", "verdict", "tests"),
    [
        ((ran(0),), "not_proved", ()),
        ((ran(1, "FAILED t.py::one - x"),), "proved", ("t.py::one",)),
        ((ran(2, "ModuleNotFoundError: x"),), "absent", ()),
        ((ran(3, "boom"),), "absent", ()),
        ((ran(127),), "not_applicable", ()),
        ((ran(0), ran(1, "--- FAIL: TestA (0s)")), "proved", ("TestA",)),
    ],
)
def test_red_on_base_says_what_the_tests_prove(
    results: tuple[CommandResult, ...], verdict: str, tests: tuple[str, ...]
) -> None:
    found = red.verdict(results)
    assert (found.result, found.tests) == (verdict, tests)


def test_only_commands_that_name_a_test_file_are_run_on_base() -> None:
    specs = (
        CommandSpec(program="pytest", args=("tests/test_a.py",)),
        CommandSpec(program="python", args=("-m", "unittest", "tests.test_a")),
        CommandSpec(program="vitest", args=("src/a.test.ts",), cwd="web"),
        CommandSpec(program="ruff", args=("check",)),
    )
    assert red.naming(specs, ("tests/test_a.py", "web/src/a.test.ts")) == specs[:3]


def run(command: str, exit_code: int, output: str = "") -> CommandRun:
    return CommandRun(command=command, exit=exit_code, seconds=1, output=output)


def test_only_new_failures_are_regressions() -> None:
    baseline = [run("a", 0), run("b", 1, ONE), run("c", 1, ONE)]
    now = [run("a", 1), run("b", 1, TWO), run("c", 1, ONE), run("d", 1), run("e", 0)]
    assert regressions(baseline, now) == ("a", "b", "d")


LINT = {
    "ruff": ("a.py:3:1: F401 unused\nFound 1 error.", ("a.py: F401 unused",)),
    "mypy": ("src/a.py:12: error: Bad  [x]\nFound 1 error in 1 file", ("src/a.py: error: Bad  [x]",)),
    "tsc": ("src/a.ts(3,7): error TS2304: no name", ("src/a.ts: error TS2304: no name",)),
    "eslint": ("/w/a.js\n  1:5  error  no var  no-var\n", ("/w/a.js: error  no var  no-var",)),
    "nothing": ("all is well", ()),
}


@pytest.mark.parametrize("name", LINT)
def test_findings_of_a_linter_are_known_without_their_lines(name: str) -> None:
    output, wanted = LINT[name]
    assert findings(output) == wanted


def test_one_finding_more_of_the_same_is_a_new_failure() -> None:
    old = ran(1, "a.py:3:1: F401 unused")
    assert same_failure(ran(1, "a.py:9:1: F401 unused"), old)
    assert not same_failure(ran(1, "a.py:3:1: F401 unused\na.py:8:1: F401 unused"), old)


def test_what_failed_before_is_known_even_when_its_output_was_cut() -> None:
    now, cut = ran(1, "a.py:9:1: F401 unused"), ran(1, "…")
    assert same_failure(now, cut, before=("a.py: F401 unused", "b.py: F401 unused"))


def test_a_note_tells_each_failed_command_with_the_end_of_its_output() -> None:
    runs = [run("a", 0), run("b", 1, "x" * 3000 + "the end")]
    assert told(runs, tail=7) == "$ b\nexit 1\nthe end"


def test_generated_untracked_files_are_not_meant_unless_the_plan_names_them() -> None:
    changed = ["src/a.py", "dist/app.js", "dist/tracked.js", "local.cfg", "data/x.bin", "run.log", "bin/tool"]
    untracked = {"src/a.py", "dist/app.js", "local.cfg", "data/x.bin", "run.log", "bin/tool"}
    found = meant(changed, untracked=untracked, inputs=("local.cfg", "data"), wanted=("bin/tool",))
    assert found == ("bin/tool", "dist/tracked.js", "src/a.py")
