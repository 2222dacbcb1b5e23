"""Template texts: the built-in ones, edited ones laid over them, and what includes what. Names come without their suffix."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateError, TemplateNotFound, meta, nodes
from jinja2.sandbox import SandboxedEnvironment

from beadmill.errors import NotFound

BUILT_IN = Path(__file__).parent / "templates"
SUFFIX = ".md.j2"
Edits = Mapping[str, str | None]  # name → edited text; None = a file that is no readable text
# What a template of a person may raise when it is parsed or rendered.
FAILURES = (TemplateError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)


@cache
def built_ins() -> Mapping[str, str]:
    """Every built-in text by name; a shared snippet begins with ``_``."""
    return {path.name.removesuffix(SUFFIX): path.read_text("utf-8") for path in sorted(BUILT_IN.glob(f"*{SUFFIX}"))}


def built_in(name: str) -> str:
    """Raises NotFound."""
    if name not in built_ins():
        raise NotFound(f"there is no prompt template {name!r}", code="TEMPLATE_NOT_FOUND", next="beadmill prompt list")
    return built_ins()[name]


def is_snippet(name: str) -> bool:
    return name.startswith("_")


class _Laid(BaseLoader):
    """Edited texts before built-in ones. The file name of a template is ``prompt:<name>``, which errors then tell."""

    def __init__(self, edits: Mapping[str, str]) -> None:
        self.edits = edits

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, None]:  # noqa: ARG002 - jinja's
        name = template.removesuffix(SUFFIX)
        text = self.edits.get(name, built_ins().get(name))
        if text is None:
            raise TemplateNotFound(template)
        return text, f"prompt:{name}", None


def environment(edits: Mapping[str, str]) -> SandboxedEnvironment:
    """One per set of edits: it keeps its templates compiled."""
    return _environment(tuple(sorted(edits.items())))


@lru_cache(maxsize=32)
def _environment(edits: tuple[tuple[str, str], ...]) -> SandboxedEnvironment:
    return SandboxedEnvironment(
        loader=_Laid(dict(edits)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # an include ends its line, so the blank line behind it stays one
        autoescape=False,  # the output is a prompt, not a page
    )


@lru_cache(maxsize=256)
def _parsed(text: str) -> nodes.Template:
    return environment({}).parse(text)


def included(text: str) -> tuple[tuple[str, int], ...]:
    """What a text takes in, each with its line: the snippet's name, or "" for what is no include of a snippet by name.
    Raises TemplateSyntaxError."""
    kinds = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
    return tuple((_target(node), node.lineno) for node in _parsed(text).find_all(kinds))


def _target(node: nodes.Node) -> str:
    wanted = node.template if isinstance(node, nodes.Include) else None
    name = wanted.value if isinstance(wanted, nodes.Const) else None
    known = isinstance(name, str) and name.endswith(SUFFIX) and is_snippet(name)
    return (
        name.removesuffix(SUFFIX)
        if known and isinstance(name, str) and name.removesuffix(SUFFIX) in built_ins()
        else ""
    )


def reach(name: str, edits: Mapping[str, str]) -> frozenset[str]:
    """``name`` and every snippet it comes to include. Raises TemplateSyntaxError."""
    found: set[str] = set()
    ahead = [name]
    while ahead:
        here = ahead.pop()
        if here not in found:
            found.add(here)
            ahead += [target for target, _ in included(edits.get(here, built_in(here))) if target]
    return frozenset(found)


def users(snippet: str, edits: Mapping[str, str]) -> tuple[str, ...]:
    """The prompts that come to include a snippet. Raises TemplateSyntaxError."""
    return tuple(name for name in built_ins() if not is_snippet(name) and snippet in reach(name, edits))


def values_of(text: str) -> frozenset[str]:
    """The names a text expects to be given. Raises TemplateSyntaxError."""
    return frozenset(meta.find_undeclared_variables(_parsed(text)))
