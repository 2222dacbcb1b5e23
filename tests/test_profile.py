from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from beadmill.errors import Unprocessable
from beadmill.leaves import READ, SAYS, flat, leaves, nested
from beadmill.profile import Profile
from beadmill.settings import RunSettings, Settings

MINE = """# mine
port = 7421
odd = 3  # of another release

[defaults.council]
quorum = 3  # as many as we trust
"""


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    (tmp_path / "config.toml").write_text(MINE)
    return Profile(Settings(home=tmp_path))


def test_every_setting_says_what_it_does_and_no_other() -> None:
    assert list(SAYS) == list(leaves())
    assert set(READ) <= set(SAYS)


def test_a_layer_by_its_leaves_is_the_same_layer() -> None:
    layer = RunSettings().overlaid({"council": {"seats": ["codex/gpt-5"]}}).model_dump(mode="json")
    assert nested(flat(layer)) == layer


@pytest.mark.parametrize(
    ("path", "kind", "said"),
    [
        ("council.quorum", "integer", "1–10"),
        ("budget.usd", "number", "above 0"),
        ("context_tokens", "integer", "from 8000"),
        ("build.review", "choice", "flag, fail, off"),
        ("questions.enabled", "switch", ""),
        ("council.seats", "seats", "up to 10"),
        ("implementer", "seat", ""),
        ("allow_hosts", "lines", ""),
    ],
)
def test_a_leaf_knows_what_it_takes(path: str, kind: str, said: str) -> None:
    assert (leaves()[path].kind, leaves()[path].range) == (kind, said)


def test_a_written_setting_keeps_comments_and_unknown_keys(profile: Profile) -> None:
    profile.write({"council.quorum": 4, "build.idle_s": 60})

    assert profile.path.read_text() == MINE.replace("quorum = 3", "quorum = 4") + "\n[defaults.build]\nidle_s = 60\n"
    assert profile.path.stat().st_mode & 0o077 == 0


def test_a_setting_taken_out_is_inherited_again(profile: Profile) -> None:
    profile.write({"council.quorum": None, "build.idle_s": None})

    assert profile.now() == RunSettings()


def test_a_value_out_of_range_leaves_the_file_alone(profile: Profile) -> None:
    with pytest.raises(ValidationError):
        profile.write({"council.quorum": 11})
    assert profile.path.read_text() == MINE


def test_a_file_changed_by_hand_counts_at_once(profile: Profile) -> None:
    profile.path.write_text("[defaults.council]\nquorum = 10\n")
    assert profile.now().council.quorum == 10


def test_a_damaged_file_changes_nothing_and_is_named(profile: Profile) -> None:
    profile.path.write_text("[defaults.council\nquorum = 10\n")

    assert profile.now().council.quorum == 3
    assert profile.problem.startswith(f"{profile.path} does not count")
    with pytest.raises(Unprocessable, match="is no TOML"):
        profile.write({"council.quorum": 4})


def test_the_environment_lies_over_the_file(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEADMILL_DEFAULTS__COUNCIL__QUORUM", "5")
    again = Profile(Settings(home=profile.path.parent))

    assert dict(again.layers())["environment"] == {"council": {"quorum": "5"}}
    assert again.now().council.quorum == 5


def test_what_the_program_was_started_with_lies_over_all(profile: Profile) -> None:
    started = Profile(Settings(home=profile.path.parent, defaults=RunSettings(agent_slots=7)))
    assert (started.now().agent_slots, started.now().council.quorum) == (7, 2)
