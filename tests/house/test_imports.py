"""Imports run downward, and no circle of files."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from beadmill.domain.sop import reach
from tests.house.source import ROOT, modules


def test_imports_run_downward() -> None:
    tool = Path(sys.executable).parent / "lint-imports"
    command = [str(tool), "--no-cache"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_circle_of_files() -> None:
    graph = grimp.build_graph("beadmill", cache_dir=None)
    circles = [m for m in sorted(graph.modules) if m in reach((m,), graph.find_modules_directly_imported_by)]
    assert circles == []


def exists(name: str) -> bool:
    path = ROOT / "src" / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_every_module_that_is_imported_is_in_the_repository() -> None:
    wanted = {
        (module.name, node.module)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("beadmill")
    }
    assert sorted((where, name) for where, name in wanted if not exists(name or "")) == []


@pytest.mark.parametrize("name", ["domain.flow", "domain.bead", "domain.council", "domain.budget", "processes.spec"])
def test_what_the_runner_loads_needs_the_standard_library_only(name: str) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); import beadmill.{name}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
