"""The tamper guard reads unified diffs."""

from __future__ import annotations

from pathlib import Path

import pytest

from beadmill.proof.tamper import findings, split
from tests.conftest import Git

PY = "def test_a():\n    assert 1 == 1\n    assert 2 == 2\n"
UNIT = "class T(unittest.TestCase):\n    def test_a(self):\n        self.assertTrue(1)\n        self.assertTrue(2)\n"
JS = "it('a', () => { expect(1).toBe(1) })\nit('b', () => { expect(2).toBe(2) })\n"
GO = 'func TestA(t *testing.T) {\n\tif false {\n\t\tt.Errorf("a")\n\t}\n}\n'
JAVA = "class ATest {\n  @Test void a() { assertEquals(1, 1); }\n}\n"


def diff(repo: Path, git: Git, before: dict[str, str], after: dict[str, str | None]) -> str:
    for files, message in ((before, "before"), (after, "after")):
        for name, text in files.items():
            path = repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True) if text is None else path.write_text(text)
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", message)
    return git(repo, "diff-tree", "-r", "-p", "--find-renames", "HEAD~1", "HEAD")


@pytest.mark.parametrize(
    ("path", "before", "after", "kind", "framework"),
    [
        ("tests/test_a.py", PY, PY.replace("    assert 2 == 2\n", ""), "fewer_assertions", "pytest"),
        ("tests/test_a.py", PY, "@pytest.mark.skip\n" + PY, "skipped", "pytest"),
        ("tests/test_a.py", PY, None, "deleted", "pytest"),
        ("tests/test_u.py", UNIT, UNIT.replace("self.assertTrue(2)", "pass"), "fewer_assertions", "unittest"),
        ("tests/test_u.py", UNIT, UNIT.replace("    def", "    @unittest.skip('x')\n    def"), "skipped", "unittest"),
        ("src/a.test.ts", JS, JS.replace("it('a'", "it.only('a'"), "only", "jest/vitest"),
        ("src/a.test.ts", JS, JS.replace("it('a'", "it.skip('a'"), "skipped", "jest/vitest"),
        ("src/a.spec.js", JS, JS.replace("expect(2).toBe(2)", ""), "fewer_assertions", "jest/vitest"),
        ("a_test.go", GO, GO.replace("\tif", "\tt.Skip()\n\tif"), "skipped", "go"),
        ("a_test.go", GO, GO.replace('t.Errorf("a")', "_ = 1"), "fewer_assertions", "go"),
        ("src/test/java/ATest.java", JAVA, JAVA.replace("@Test", "@Disabled @Test"), "skipped", "JUnit"),
        ("src/test/java/ATest.java", JAVA, JAVA.replace("assertEquals(1, 1);", ""), "fewer_assertions", "JUnit"),
        ("spec/a_spec.rb", "expect(1).to eq 1\n", None, "deleted", "unknown framework"),
    ],
)  # fmt: skip
def test_a_weakened_test_is_found(
    repo: Path, git: Git, *, path: str, before: str, after: str | None, kind: str, framework: str
) -> None:
    found = findings(diff(repo, git, {path: before, "keep.txt": "x"}, {path: after}))
    assert [(one.path, one.kind, one.framework) for one in found] == [(path, kind, framework)]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("tests/test_a.py", PY, PY + "\n\ndef test_b():\n    assert 3 == 3\n"),
        ("tests/test_a.py", PY, PY.replace("assert 1 == 1", "assert 1 == 2")),
        ("tests/test_a.py", PY, "def test_a():\n    assert 2 == 2\n    assert 1 == 1\n"),
        ("tests/test_new.py", "", PY),
        ("src/code.py", "assert x\nassert y\n", "assert x\n"),
        ("src/skip.ts", "a\n", "it.skip\n"),
    ],
)
def test_honest_changes_are_not_findings(repo: Path, git: Git, path: str, before: str, after: str) -> None:
    assert findings(diff(repo, git, {path: before, "keep.txt": "x"}, {path: after})) == ()


def test_a_renamed_test_names_both_paths(repo: Path, git: Git) -> None:
    found = findings(diff(repo, git, {"tests/test_a.py": PY}, {"tests/test_a.py": None, "old/a.py": PY}))
    assert [(one.path, one.kind, one.detail) for one in found] == [("tests/test_a.py", "renamed", "now old/a.py")]


@pytest.mark.parametrize(
    ("path", "before", "after", "detail"),
    [
        ("pytest.ini", "[pytest]\n", "[pytest]\naddopts = --ignore=tests/slow\n", "addopts = --ignore=tests/slow"),
        ("pyproject.toml", "xfail_strict = true\nx = 1\n", "x = 1\n", "removed: xfail_strict = true"),
        ("package.json", '{\n"x": 1\n}\n', '{\n"passWithNoTests": true\n}\n', '"passWithNoTests": true'),
        ("pom.xml", "<a/>\n", "<a/>\n<skipTests>true</skipTests>\n", "<skipTests>true</skipTests>"),
        ("Makefile", "test:\n\tpytest\n", "test:\n\tpytest || true\n", "pytest || true"),
    ],
)
def test_a_loosened_configuration_is_found(
    repo: Path, git: Git, *, path: str, before: str, after: str, detail: str
) -> None:
    found = findings(diff(repo, git, {path: before}, {path: after}))
    assert [(one.kind, one.detail) for one in found] == [("loosened_config", detail)]


def test_a_diff_is_split_into_files_with_odd_names(repo: Path, git: Git) -> None:
    files = split(diff(repo, git, {"keep": "x"}, {"a b/tést.py": "+++ x\n--- y\n@@ z\n", "c.txt": "1\n"}))
    assert [(file.old, file.added) for file in files] == [("", ("+++ x", "--- y", "@@ z")), ("", ("1",))]
    assert files[1].path == "c.txt"


def test_text_that_is_no_diff_has_no_findings() -> None:
    assert findings("hello\n-assert x\n") == ()
