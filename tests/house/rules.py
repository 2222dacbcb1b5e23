"""What the syntax tree must not hold. Each rule takes one module and yields ``line: what``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.source import Module, dotted, functions

PROCESS_CALLS = re.compile(
    r"(^|\.)(subprocess|pty|multiprocessing)(\.|$)"
    r"|^os\.(exec\w*|spawn\w*|posix_spawn\w*|system|popen|fork\w*)$"
    r"|create_subprocess_(exec|shell)$|subprocess_(exec|shell)$"
)
JOURNALED = frozenset({"runs", "visits", "gates", "decisions", "waits", "scopes", "steps", "bead_attempts"})
WRITES = frozenset({"insert", "update", "delete"})
SQL_WRITE = re.compile(
    rf"\b(update|insert\s+(or\s+\w+\s+)?into|delete\s+from)\s+({'|'.join(JOURNALED)})\b", re.IGNORECASE
)
BROAD = frozenset({"Exception", "BaseException"})
PARALLEL = re.compile(
    r"(^|\.)(TaskGroup|gather|create_task|ensure_future|create_task_group|timeout|timeout_at|wait_for)$"
)


def starts_processes(module: Module) -> Iterator[str]:
    """Imports and calls that start a process."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            names = [dotted(node.func)]
        else:
            continue
        yield from (f"{node.lineno}: {name}" for name in names if PROCESS_CALLS.search(name))


def writes_journal(module: Module) -> Iterator[str]:
    """SQLAlchemy or text statements that write a table which only the journal writes."""
    known = _table_names(module.tree)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if found := SQL_WRITE.search(node.value):
                yield f"{node.lineno}: {found.group()}"
        elif isinstance(node, ast.Call) and (verb := dotted(node.func).rpartition(".")[2]) in WRITES:
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
            operands = [*node.args[:1], *([receiver] if receiver is not None else [])]
            for operand in operands:
                if (table := _table(operand, known)) in JOURNALED:
                    yield f"{node.lineno}: {verb} {table}"


def _table(node: ast.AST, known: dict[str, str]) -> str:
    """The table an expression names: ``tables.runs``, ``r`` after ``r = tables.runs``; an alias() is not a write."""
    name = dotted(node)
    head, _, last = name.rpartition(".")
    if head.rpartition(".")[2] == "tables":
        return last
    return known.get(name, "")


def _table_names(tree: ast.Module) -> dict[str, str]:
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("tables"):
            known.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                known.update(_assigned(target, node.value, known))
    return known


def _assigned(target: ast.expr, value: ast.expr, known: dict[str, str]) -> dict[str, str]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = zip(target.elts, value.elts, strict=False)
        return {name: table for one, other in pairs for name, table in _assigned(one, other, known).items()}
    table = _table(value, known)
    return {target.id: table} if isinstance(target, ast.Name) and table else {}


def broad_handlers(module: Module) -> Iterator[str]:
    """``except Exception``, ``except BaseException``, a bare except, suppress of either; not one that ends by raising
    again what it caught."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node):
            yield f"{node.lineno}: except {ast.unparse(node.type) if node.type else ''}".rstrip()
        if isinstance(node, ast.Call) and dotted(node.func).endswith("suppress"):
            caught = {name for arg in node.args for name in _names(arg)}
            yield from (f"{node.lineno}: suppress({name})" for name in sorted(caught & BROAD))


def _is_broad(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    raises_again = isinstance(last, ast.Raise) and last.exc is None
    return (handler.type is None or bool(_names(handler.type) & BROAD)) and not raises_again


def _names(node: ast.expr) -> set[str]:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return {dotted(part).rpartition(".")[2] for part in parts}


def breaks_replay(module: Module) -> Iterator[str]:
    """What durable node code must not do: run things in parallel by itself, swallow the engine's signals, or keep
    something open (finally, async with) around a call at which an activation may end."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and PARALLEL.search(dotted(node.func)):
            yield f"{node.lineno}: {dotted(node.func)}"
        if isinstance(node, ast.ExceptHandler) and (node.type is None or "BaseException" in _names(node.type)):
            yield f"{node.lineno}: except BaseException"
    for function in functions(module.tree):
        taken = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        if any(re.search(r"\bVisit\b", ast.unparse(arg.annotation)) for arg in taken if arg.annotation):
            yield from _held_open(function)


def _held_open(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        held = isinstance(node, ast.AsyncWith) or (isinstance(node, ast.Try | ast.TryStar) and node.finalbody)
        if held and any(isinstance(inner, ast.Await) for inner in ast.walk(node)):
            yield f"{getattr(node, 'lineno', 0)}: {type(node).__name__} around an await"
