from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from beadmill.errors import Unprocessable
from beadmill.settings import RunSettings, SeatConfig, Settings


def test_layers_are_merged_key_by_key_and_the_last_one_wins() -> None:
    made = RunSettings().overlaid({"build": {"attempts": 2, "idle_s": 60}}, {"build": {"attempts": 3}})

    assert (made.build.attempts, made.build.idle_s, made.build.iteration_s) == (3, 60, 1200)


def test_an_unknown_setting_of_a_person_is_refused() -> None:
    with pytest.raises(ValidationError, match="speed"):
        RunSettings().overlaid({"build": {"speed": 9}})


def test_a_setting_that_is_gone_since_a_run_froze_it_does_not_stop_the_run() -> None:
    frozen = RunSettings().overlaid({"build": {"attempts": 2}}).model_dump(mode="json")
    frozen["build"]["workers"] = 4
    frozen["hooks"] = "observe_only"

    thawed = RunSettings.thawed(frozen)

    assert thawed == RunSettings().overlaid({"build": {"attempts": 2}})


@pytest.mark.parametrize(
    ("text", "seat"),
    [
        ("codex", ("codex", "", "")),
        ("codex/gpt-5", ("codex", "gpt-5", "")),
        ("codex/gpt-5/high", ("codex", "gpt-5", "high")),
        ("opencode/anthropic/claude-sonnet-4-5", ("opencode", "anthropic/claude-sonnet-4-5", "")),
        ("opencode/openrouter/z-ai/glm-5/low", ("opencode", "openrouter/z-ai/glm-5", "low")),
    ],
)
def test_a_last_part_that_is_no_effort_belongs_to_the_models_name(text: str, seat: tuple[str, str, str]) -> None:
    (made,) = RunSettings().overlaid({"council": {"seats": [text]}}).council.seats
    assert (made.agent, made.model, made.effort) == seat


def test_a_seat_is_written_as_agent_model_and_effort() -> None:
    assert RunSettings().overlaid({"council": {"seats": ["codex/gpt-5/high"]}}).council.seats == (
        SeatConfig(agent="codex", model="gpt-5", effort="high"),
    )


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text('port = 1234\nsynchronous = "FULL"\n')
    monkeypatch.setenv("BEADMILL_PORT", "4321")

    made = Settings(home=tmp_path)

    assert (made.port, made.synchronous) == (4321, "FULL")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            b"port = 1\n[agents.x\nfoo = 2\n",
            "is no TOML: Expected ']' at the end of a table declaration (at line 2, column 10)",
        ),
        (b'[defaults.council]\nquorum = "x"\n', "defaults.council.quorum: Input should be a valid integer"),
        (
            b"port = 70000\n[defaults]\nquorums = 1\n",
            "port: Input should be less than or equal to 65535; defaults.quorums: ",
        ),
        (b"name = '\xff'\n", "is no text in UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_stops_the_start_and_says_where_it_is_wrong(  # C54: nothing is passed by in silence
    tmp_path: Path, text: bytes, said: str
) -> None:
    (tmp_path / "config.toml").write_bytes(text)
    with pytest.raises(Unprocessable) as refused:
        Settings.read(home=tmp_path)
    assert said in refused.value.message
    assert str(tmp_path / "config.toml") in f"{refused.value.message} {refused.value.next}"


def test_a_value_that_is_refused_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('agents = "kq8Zr2vN5xWm"\n')
    with pytest.raises(Unprocessable) as refused:
        Settings.read(home=tmp_path)
    assert refused.value.message == "the settings cannot be used: agents: Input should be a valid dictionary"


HOSTS = ("example.org", "*.example.org", "a_b.example.org:8443", "127.0.0.1:8080", "[::1]", "[::1]:65535")


def test_hosts_of_an_allow_list_are_names_and_addresses_with_a_port_or_without() -> None:
    assert RunSettings().overlaid({"network": "allow-list", "allow_hosts": [*HOSTS]}).allow_hosts == HOSTS


@pytest.mark.parametrize(
    "wrong", ["", "*", "*.", "*:443", "http://example.org", "example.org/a", "a b", "a:0", "a:65536", "::1", "a\n"]
)
def test_what_names_no_host_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError, match="allow_hosts"):
        RunSettings().overlaid({"allow_hosts": [wrong]})
