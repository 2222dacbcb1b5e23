"""What a test looks like, per framework. Data and pure predicates; an unknown framework is said to be unknown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from re import Pattern

UNKNOWN = "unknown framework"


@dataclass(frozen=True, slots=True)
class Framework:
    """``skip``, ``only`` and ``assertion`` each match one occurrence on a source line."""

    name: str
    skip: Pattern[str]
    only: Pattern[str]
    assertion: Pattern[str]


_NEVER = re.compile(r"(?!)")
PYTEST = Framework(
    "pytest",
    re.compile(r"pytest\.mark\.(?:skip|skipif|xfail)\b|pytest\.(?:skip|xfail|importorskip)\("),
    _NEVER,
    re.compile(r"(?:^|\s)assert\s|pytest\.(?:raises|warns|approx)\("),
)
UNITTEST = Framework(
    "unittest",
    re.compile(r"@(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b|\.skipTest\(|\bSkipTest\("),
    _NEVER,
    re.compile(r"\bself\.(?:assert\w+|fail)\(|(?:^|\s)assert\s"),
)
JEST = Framework(
    "jest/vitest",
    re.compile(r"\b(?:it|test|describe)\.(?:skip|todo|failing|skipIf)\b|\b(?:xit|xtest|xdescribe)\("),
    re.compile(r"\b(?:it|test|describe)\.only\b|\b(?:fit|fdescribe)\("),
    re.compile(r"\bexpect\(|\bassert(?:\.\w+)?\("),
)
GO = Framework(
    "go",
    re.compile(r"\b[tbf]\.(?:Skip|SkipNow|Skipf)\(|testing\.Short\(\)|^\s*//go:build\s"),
    _NEVER,
    re.compile(r"\b[tbf]\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\b(?:assert|require)\.\w+\("),
)
JUNIT = Framework(
    "JUnit",
    re.compile(r"@(?:Disabled\w*|Ignore|EnabledIf\w*|EnabledOn\w*)\b|\bassum(?:e|ing)\w*\("),
    _NEVER,
    re.compile(r"\bassert\w*\(|\bverify\(|\bfail\("),
)
NOTHING = Framework(UNKNOWN, _NEVER, _NEVER, _NEVER)

_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "testing", "e2e"})
_TEST_NAMES = (
    "test_*.py", "*_test.py", "conftest.py", "*.test.*", "*.spec.*", "*_test.go", "*Test.java", "*Tests.java", "*IT.java",
    "*Test.kt", "*Tests.kt", "*_test.rb", "*_spec.rb", "*_test.rs", "*Test.php", "*Tests.cs", "*_test.exs",
)  # fmt: skip
_UNITTEST = re.compile(r"\bunittest\b|\bself\.assert\w+\(")
_PYTEST = re.compile(r"\bpytest\b|^\s{0,3}def test_", re.MULTILINE)


def is_test(path: str) -> bool:
    """A test file, or something only tests use (fixtures below a test folder, conftest.py)."""
    pure = PurePosixPath(path)
    if any(part.lower() in _TEST_FOLDERS for part in pure.parts[:-1]):
        return True
    return any(fnmatchcase(pure.name, pattern) for pattern in _TEST_NAMES)


def framework_of(path: str, text: str = "") -> Framework:
    """By file name first; the text tells pytest and unittest apart."""
    suffix = PurePosixPath(path).suffix
    if suffix == ".py":
        return UNITTEST if _UNITTEST.search(text) and not _PYTEST.search(text) else PYTEST
    if suffix in {".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"}:
        return JEST
    if suffix == ".go":
        return GO
    return JUNIT if suffix in {".java", ".kt", ".groovy"} else NOTHING


_CONFIGS = (
    "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "conftest.py", ".coveragerc", "jest.config.*", "vitest.config.*",
    "vitest.workspace.*", "package.json", "pom.xml", "build.gradle", "build.gradle.kts", "Makefile", "go.mod", "noxfile.py",
)  # fmt: skip
LOOSER = re.compile(
    r"--ignore(?:-glob)?[= ]|--deselect|collect_ignore|norecursedirs|testPathIgnorePatterns|passWithNoTests|\|\| *true\b"
    r"|skipTests|maven\.test\.skip|testFailureIgnore|ignoreFailures|continue-on-error|\bexclude(?:s|Test\w*)?\b"
    r"|--exitfirst=0|allowOnly|-m [\"']not "
)
STRICTER = re.compile(
    r"xfail_strict|--strict|filterwarnings|fail_under|--cov-fail-under|coverageThreshold|failIfNoTests|-Werror|\"test\" *:"
)


def is_test_config(path: str) -> bool:
    name = PurePosixPath(path).name
    return any(fnmatchcase(name, pattern) for pattern in _CONFIGS)
