"""What the browser is sent: kept for ever under its hash, ours within its size, the vendored as locked."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from beadmill.web.pages.assets import STATIC, address
from beadmill.web.pages.render import TEMPLATES

ROOT = Path(__file__).parents[2]
TEXTS = sorted(path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.html"))
NAMES = {"Beadmill", "beadmill", "demo", "open", "agent", "install", "YAML", "SHA", "P", "v"}


async def test_a_static_file_is_kept_for_ever_under_the_hash_of_its_content(signed_in: httpx2.AsyncClient) -> None:
    answer = await signed_in.get(address("app.css"))
    assert answer.content == (STATIC / "app.css").read_bytes()
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"


@pytest.mark.parametrize("path", ["/static/x/../../pages/words.py", "/static/x/..%2f..%2fapp.py", "/static/x/none.css"])
async def test_only_static_files_are_served(signed_in: httpx2.AsyncClient, path: str) -> None:
    assert (await signed_in.get(path)).status_code == 404


def test_our_own_style_sheet_stays_small() -> None:
    assert (STATIC / "app.css").read_text().count("\n") <= 800


def test_the_first_page_stays_light() -> None:
    files = [path for path in STATIC.rglob("*") if path.suffix in (".css", ".js", ".svg")]
    assert sum(path.stat().st_size for path in files) <= 100_000


def vendor_check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "tools" / "vendor" / "vendor.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_vendored_files_are_as_locked() -> None:
    done = vendor_check(ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_changed_vendored_file_is_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tools" / "vendor", tmp_path / "tools" / "vendor")
    vendored = tmp_path / "src" / "beadmill" / "web" / "static" / "vendor"
    shutil.copytree(STATIC / "vendor", vendored)
    with (vendored / "htmx.js").open("a") as file:
        file.write("// more\n")
    done = vendor_check(tmp_path)
    assert (done.returncode, done.stderr) == (1, "htmx.js: was changed\n")


# --- templates ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", TEXTS)
def test_no_template_has_inline_code_or_style(name: str) -> None:
    source = (TEMPLATES / name).read_text()
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=\"|javascript:|<script(?![^>]*\ssrc=)|hx-on|\bsafe\b", source) == []


@pytest.mark.parametrize("name", TEXTS)
def test_every_word_of_a_template_can_be_translated(name: str) -> None:
    source = (TEMPLATES / name).read_text()
    bare = re.sub(
        r"(?s)\{\{.*?\}\}|\{%.*?%\}|<svg.*?</svg>|<pre.*?</pre>|<title>.*?</title>|<[^>]+>|&\w+;", " ", source
    )
    assert set(re.findall(r"[A-Za-z]+", bare)) - NAMES == set()
