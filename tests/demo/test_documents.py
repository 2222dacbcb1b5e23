"""What the documentation says exists, and what exists is documented."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from pydantic import BaseModel

from beadmill.leaves import Leaf, leaves
from beadmill.operations.routes import PREFIX, ROUTES
from beadmill.settings import RunSettings, SeatConfig, Settings
from beadmill.sops import builtin, load

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
TIMES = {"start": "start", "visit": "stage", "try": "try", "session": "session", "gate": "start, gate"}
NAMES = ("deliver", "deliver-lite", "hello")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel) and inner not in (SeatConfig, RunSettings):
            yield from names(inner, f"{prefix}{name}.")
        else:
            yield prefix + name


def documented() -> set[str]:
    return set(
        re.findall(r"^\| `([a-z_.]+)` \|", (ROOT / "docs/settings.md").read_text(encoding="utf-8"), re.MULTILINE)
    )


def test_every_setting_is_documented_and_no_other() -> None:
    assert documented() == {*names(Settings), *names(RunSettings)}


def cells(leaf: Leaf) -> tuple[str, str, str]:
    """Default, range and time of reading, as the page says them."""
    default = {"None": "unset", "[]": "none", "": "none", "True": "true"}.get(str(leaf.default))
    plain = f"`{leaf.default}`" if leaf.choices else f"{leaf.default:,}" if default is None else default
    takes = ", ".join(f"`{one}`" for one in leaf.choices) or leaf.range
    return plain, takes.replace("8000", "8,000"), TIMES[leaf.when]


@pytest.mark.parametrize("leaf", leaves().values(), ids=lambda leaf: leaf.path)
def test_the_page_says_default_range_and_time_of_a_setting(leaf: Leaf) -> None:
    text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{re.escape(leaf.path)}` \| (.+?) \| (.+?) \| (.+?) \|", text, re.MULTILINE)
    default, takes, read = cells(leaf)
    assert (row[0], row[1] if takes else "", row[2]) == (default, takes, read)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert missing == []


def test_the_picture_is_well_formed_and_described() -> None:
    picture = ET.parse(ROOT / "docs/picture.svg").getroot()
    texts = [child.tag.rpartition("}")[2] for child in picture][:2]
    assert texts == ["title", "desc"]


def test_the_locks_hold_hashes_and_no_addresses() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        entries = re.findall(r"^[a-z0-9._-]+==.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)+", text, re.MULTILINE)
        assert len(entries) == len(re.findall(r"^\S+==", text, re.MULTILINE))
        assert re.findall(r"\w+://|^--", text, re.MULTILINE) == []


def test_the_lock_for_tests_holds_every_package_of_the_lock_for_use() -> None:
    use, tests = ((ROOT / name).read_text(encoding="utf-8") for name in ("requirements.lock", "requirements-dev.lock"))
    assert (
        set(re.findall(r"^\S+==\S+", use, re.MULTILINE)) - set(re.findall(r"^\S+==\S+", tests, re.MULTILINE)) == set()
    )


def test_the_page_of_the_command_line_is_what_the_commands_say() -> None:
    page: str = runpy.run_path(str(ROOT / ".ci/cli_page.py"))["page"]()
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == page


def test_every_operation_is_documented_with_its_address() -> None:
    rows = re.findall(
        r"^\| `([a-z_.]+)` \| ([A-Z]+) \| `(.+)` \|$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert rows == [(name, route.method, PREFIX + route.path) for name, route in ROUTES.items()]


def test_every_event_is_documented() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/beadmill").rglob("*.py"))
    emitted = set(re.findall(r'\bEvent\(\s*"([a-z_]+\.[a-z_]+)"', sources))
    told = set(
        re.findall(
            r"`([a-z_]+\.[a-z_]+)`", (ROOT / "docs/api.md").read_text(encoding="utf-8").partition("## Events")[2]
        )
    )
    assert emitted - told == set()


def test_every_node_kind_of_a_built_in_sop_is_documented() -> None:
    text = (ROOT / "docs/sop-files.md").read_text(encoding="utf-8").partition("## Node kinds")[2]
    kinds = {node.kind for name in NAMES for node in load(builtin(name), name=name).graph.nodes.values()}
    assert set(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE)) == kinds
