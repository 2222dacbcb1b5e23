"""Where tokens come from, for which host each of them is, and where they never are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from beadmill import redact
from beadmill.errors import Refused
from beadmill.forges.credentials import FILE, Token, Tokens, variable

SECRET = "canary-9d3e77aa10"
OTHER = "canary-51c0ffee22"


@pytest.fixture(autouse=True)
def no_tokens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.endswith("_TOKEN") or name in ("GH_HOST", "GITLAB_HOST", "GITEA_SERVER_URL"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("BEADMILL_TRUSTED_EXECUTABLE_DIRS", str(tmp_path / "bin"))


def cli(tmp_path: Path, name: str, script: str, *, mode: int = 0o755) -> None:
    (tmp_path / "bin").mkdir(exist_ok=True, mode=0o755)
    program = tmp_path / "bin" / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(mode)


async def test_the_variable_of_the_host_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", OTHER)
    monkeypatch.setenv("BEADMILL_FORGE_TOKEN_GITHUB_COM", SECRET)
    assert await Tokens().find("github.com", "github") == Token(SECRET, "BEADMILL_FORGE_TOKEN_GITHUB_COM")


def test_the_variable_is_named_after_host_and_port() -> None:
    assert variable("git.corp-x.test:8443") == "BEADMILL_FORGE_TOKEN_GIT_CORP_X_TEST_8443"


@pytest.mark.parametrize(
    ("name", "host", "kind", "says"),
    [
        ("GH_TOKEN", "github.com", "github", {}),
        ("GITHUB_TOKEN", "github.com", "github", {}),
        ("GH_ENTERPRISE_TOKEN", "ghe.corp.test", "github", {}),
        ("GITLAB_TOKEN", "gitlab.com", "gitlab", {}),
        ("GITLAB_TOKEN", "git.corp.test", "gitlab", {"GITLAB_HOST": "https://git.corp.test"}),
        ("GITEA_TOKEN", "git.corp.test", "gitea", {"GITEA_SERVER_URL": "https://git.corp.test/"}),
    ],
)
async def test_the_usual_variables_are_known(
    monkeypatch: pytest.MonkeyPatch, *, name: str, host: str, kind: str, says: dict[str, str]
) -> None:
    for key, value in {name: SECRET, **says}.items():
        monkeypatch.setenv(key, value)
    assert await Tokens().find(host, kind) == Token(SECRET, name)


@pytest.mark.parametrize(
    ("name", "host", "kind", "says"),
    [
        ("GITHUB_TOKEN", "ghe.corp.test", "github", {}),
        ("GH_ENTERPRISE_TOKEN", "github.com", "github", {}),
        ("GH_ENTERPRISE_TOKEN", "ghe.other.test", "github", {"GH_HOST": "ghe.corp.test"}),
        ("GITLAB_TOKEN", "git.corp.test", "gitlab", {}),
        ("GITEA_TOKEN", "codeberg.org", "gitea", {}),
        ("GITHUB_TOKEN", "github.com.evil.test", "github", {}),
    ],
)
async def test_c72_a_token_of_one_host_never_goes_to_another(
    monkeypatch: pytest.MonkeyPatch, *, name: str, host: str, kind: str, says: dict[str, str]
) -> None:
    for key, value in {name: SECRET, **says}.items():
        monkeypatch.setenv(key, value)
    assert await Tokens().find(host, kind) is None


async def test_the_file_of_the_data_home_is_read(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(f'"git.corp.test" = "{SECRET}"\n')
    (tmp_path / FILE).chmod(0o600)
    assert await Tokens(tmp_path).find("git.corp.test", "gitea") == Token(SECRET, str(tmp_path / FILE))
    assert await Tokens(tmp_path).find("other.test", "gitea") is None


@pytest.mark.parametrize(("mode", "text", "code"), [(0o640, "", "TOKENS_OPEN"), (0o600, "no toml", "TOKENS_BROKEN")])
async def test_a_file_that_is_open_or_broken_is_refused(tmp_path: Path, *, mode: int, text: str, code: str) -> None:
    (tmp_path / FILE).write_text(text)
    (tmp_path / FILE).chmod(mode)
    with pytest.raises(Refused) as caught:
        await Tokens(tmp_path).find("git.corp.test", "gitea")
    assert caught.value.code == code


async def test_the_services_own_cli_is_asked_for_its_host(tmp_path: Path) -> None:
    cli(tmp_path, "gh", f'[ "$*" = "auth token --hostname ghe.corp.test" ] && echo {SECRET}')
    assert await Tokens().find("ghe.corp.test", "github") == Token(SECRET, "gh auth token")
    assert await Tokens().find("github.com", "github") is None


async def test_a_cli_is_not_asked_every_time(tmp_path: Path) -> None:
    cli(tmp_path, "gh", f"echo x >>{tmp_path}/asked; echo {SECRET}")
    tokens = Tokens()
    assert await tokens.find("github.com", "github") == await tokens.find("github.com", "github")
    assert (tmp_path / "asked").read_text() == "x\n"


async def test_a_cli_that_everybody_may_write_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BEADMILL_TRUSTED_EXECUTABLE_DIRS")
    cli(tmp_path, "gh", f"echo {SECRET}", mode=0o757)
    assert await Tokens().find("github.com", "github") is None


async def test_a_token_from_anywhere_is_masked_from_then_on(tmp_path: Path) -> None:
    secret = "canary-only-in-the-file-77"
    (tmp_path / FILE).write_text(f'"git.corp.test" = "{secret}"\n')
    (tmp_path / FILE).chmod(0o600)
    found = await Tokens(tmp_path).find("git.corp.test", "gitea")
    assert (secret in repr(found), redact.ours().text(f"a {secret} b")) == (False, "a [redacted] b")


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://github.com/o/r.git", ("x-access-token", SECRET)),
        ("http://github.com/o/r.git", None),
        ("git@github.com:o/r.git", None),
        ("https://example.org/o/r.git", None),
    ],
)
async def test_git_gets_the_token_over_https_alone(
    monkeypatch: pytest.MonkeyPatch, *, url: str, wanted: tuple[str, str] | None
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)
    assert await Tokens().for_git(url) == wanted


async def test_git_gets_no_token_of_a_kind_for_a_host_that_only_might_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_ENTERPRISE_TOKEN", SECRET)
    assert await Tokens().for_git("https://git.corp.test/o/r.git") is None
    monkeypatch.setenv("GH_HOST", "git.corp.test")
    assert await Tokens().for_git("https://git.corp.test/o/r.git") == ("x-access-token", SECRET)
