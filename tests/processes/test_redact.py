"""The funnel for secrets: known values, things that look like keys, streams cut anywhere."""

from __future__ import annotations

import os

import pytest

from beadmill import redact
from beadmill.redact import HOLD, MASK, Redactor, Scrubber, clean, secrets_of

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nMIIdef\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-" + "a1" * 20,
        "ghp_" + "A" * 36,
        "github_pat_" + "a" * 30,
        "glpat-" + "x" * 20,
        "xoxb-1234567890-abcdef",
        "AKIA" + "A1" * 8,
        "AIza" + "b" * 35,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        KEY,
    ],
)
def test_text_that_looks_like_a_key_is_masked(secret: str) -> None:
    assert Redactor().text(f"before {secret} after") == f"before {MASK} after"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abcdefghijklmnop123", f"Authorization: Bearer {MASK}"),
        ("clone https://me:pa55@example.org/x.git", f"clone https://{MASK}@example.org/x.git"),
        ("see https://example.org/a:b/c", "see https://example.org/a:b/c"),
        ("task-list sk-short ghost", "task-list sk-short ghost"),
    ],
)
def test_only_the_secret_part_goes(text: str, masked: str) -> None:
    assert Redactor().text(text) == masked


def test_values_of_secret_variables_are_masked_longest_first() -> None:
    env = {"API_TOKEN": "abcdefgh", "DB_PASSWORD": "abcdefgh-ijkl", "PATH": "/usr/bin:/bin", "SHORT_KEY": "true"}
    assert secrets_of(env) == ("abcdefgh", "abcdefgh-ijkl")
    assert Redactor(secrets_of(env)).text("abcdefgh-ijkl abcdefgh true") == f"{MASK} {MASK} true"


def test_a_json_value_keeps_its_shape() -> None:
    value = {"a": ["hunter2hunter2", {"b": "x\0y"}, 3, None, True]}
    assert Redactor(["hunter2hunter2"]).json(value) == {"a": [MASK, {"b": "x\ufffdy"}, 3, None, True]}


def test_lone_surrogates_and_nul_become_replacement_signs() -> None:
    assert clean("a\ud800b\0c") == "a\ufffdb\ufffdc"
    assert clean("grün ✓") == "grün ✓"


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_c82_a_stream_is_scrubbed_wherever_it_is_cut(size: int) -> None:
    data = f"start\n{KEY}\nand hunter2hunter2 too\nno newline at the end".encode()
    scrubber = Scrubber(Redactor(["hunter2hunter2"]))
    out = b"".join(scrubber.feed(data[i : i + size]) for i in range(0, len(data), size)) + scrubber.end()
    assert b"MII" not in out
    assert b"hunter2" not in out
    assert out.startswith(b"start\n")
    assert out.endswith(f"\nand {MASK} too\nno newline at the end".encode())


def test_a_line_without_end_does_not_pile_up() -> None:
    scrubber = Scrubber(Redactor())
    fed = sum(len(scrubber.feed(b"x" * 10_000)) for _ in range(100))
    assert 1_000_000 - 2 * HOLD < fed < 1_000_000
    assert fed + len(scrubber.end()) == 1_000_000


def test_a_tail_that_begins_inside_a_key_shows_none_of_it() -> None:
    raw = f"{KEY[40:]}\nthe end".encode()
    assert Redactor().tail(raw, 1_000) == f"{MASK}\nthe end"


def test_a_tail_has_at_most_its_bytes_and_no_half_character() -> None:
    text = Redactor().tail(("ü" * 100).encode(), 11)
    assert text == "ü" * 5


def test_the_environment_of_this_test_hides_nothing_by_chance() -> None:
    assert MASK not in Redactor(secrets_of(os.environ)).text("plain words about a token, a key and a password")


def test_secrets_are_known_by_more_names_and_in_addresses() -> None:
    env = {
        "AWS_SECRET_ACCESS_KEY": "aaaaaaaa", "DB_PASSWORD_MAIN": "bbbbbbbb", "MYSQL_PWD": "cccccccc",
        "DATABASE_URL": "postgresql://app:dddddddd@db/app", "PWD": "/home/somebody", "TOKENIZERS_PARALLELISM": "disabled",
    }  # fmt: skip
    assert secrets_of(env) == ("aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd")


def test_c82_a_secret_is_masked_as_base64_and_as_part_of_an_address() -> None:
    redactor = Redactor(["pa/ss wo?rd"])
    assert redactor.text("cGEvc3Mgd28/cmQ= pa%2Fss%20wo%3Frd pa/ss wo?rd") == f"{MASK}= {MASK} {MASK}"


def test_the_password_of_an_address_that_was_met_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "_MET", set())
    redact.met("https://bot:hunter2hunter2@example.org/x.git")
    assert redact.ours().work("it is hunter2hunter2") == f"it is {MASK}"
