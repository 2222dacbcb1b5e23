"""What a person can do through one door, they can do through the others: operation = route = CLI verb."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections import defaultdict
from pathlib import Path

import pytest

from beadmill import cli, operations
from beadmill.operations.routes import ROUTES

# Operations without a verb of their own, with the reason.
NO_VERB = {"drafts.discard": "an open form forgets its own draft; a terminal keeps none of a document"}
# Functions with ``ports`` and ``actor`` that are not operations of their own, with the reason.
INSIDE = {
    "logins.enter": "the door itself: spends a link",
    "runs.stop_and_cancel": "the second half of tickets.cancel and runs.cancel, behind their permission",
    "_discard.discard": "the second half of tickets.cancel, behind its permission",
    "clean.remove": "one thing of clean.apply and of tickets.cancel, behind their permission",
    "events.newest": "where the stream of a page begins; programs send Last-Event-ID",
    "drafts.among": "what the page of a document offers to take up again; drafts.show has each",
    "gates.waiting": "the number beside the inbox on every page; gates.listing has the gates",
    "runs.send_back": "reached by gates.send_back, and by runs.rerun on a live run",
}


def found_operations() -> set[str]:
    """Public coroutine functions of operations/ that take ports and an actor."""
    found = set()
    for module in pkgutil.iter_modules(operations.__path__):
        loaded = importlib.import_module(f"beadmill.operations.{module.name}")
        for name, function in inspect.getmembers(loaded, inspect.iscoroutinefunction):
            here = function.__module__ == loaded.__name__ and not name.startswith("_")
            if here and {"ports", "actor"} <= set(inspect.signature(function).parameters):
                found.add(f"{module.name}.{name}")
    return found


def verbs() -> dict[str, set[str]]:
    """Operation → the commands whose source calls it, directly or through a helper of the CLI."""
    out: dict[str, set[str]] = defaultdict(set)
    for path in Path(cli.__path__[0]).glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                for operation in called(function):
                    out[operation].add(f"{path.stem}.{function.name}")
    return out


def called(function: ast.FunctionDef) -> list[str]:
    calls = [c for c in ast.walk(function) if isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute)]
    ours = [c for c in calls if c.func.attr in ("call", "text", "follow", "send", "save") and c.args]  # type: ignore[attr-defined]
    return [c.args[0].value for c in ours if isinstance(c.args[0], ast.Constant) and isinstance(c.args[0].value, str)]


def test_every_operation_has_a_route_and_every_route_an_operation() -> None:
    assert found_operations() - set(INSIDE) == set(ROUTES)


@pytest.mark.parametrize("operation", sorted(set(ROUTES) - set(NO_VERB)))
def test_every_operation_has_a_verb(operation: str) -> None:
    assert verbs()[operation] != set()


def test_no_verb_calls_what_is_no_operation() -> None:
    assert set(verbs()) - set(ROUTES) == set()


def test_the_command_line_loads_nothing_heavy() -> None:
    """``ticket list`` has 400 ms in all."""
    import subprocess
    import sys

    code = "import beadmill.cli.root, sys; print(sorted({'pydantic','fastapi','sqlalchemy','rich','uvicorn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_said_without_loading_the_commands() -> None:
    import subprocess
    import sys

    code = (
        "import sys; sys.argv[1:] = ['--version']; from beadmill.cli.main import main; main();"
        "print(sorted({'typer', 'json', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"sys_path={__import__('sys').path!r}; import sys; sys.path[:] = sys_path; {code}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
