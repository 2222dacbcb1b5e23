from __future__ import annotations

from pathlib import Path

import pytest

from beadmill.errors import Unavailable
from beadmill.processes.editor import edited


def script(folder: Path, body: str) -> dict[str, str]:
    path = folder / "my editor"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o700)
    return {"EDITOR": f"'{path}' --wait"}


def test_a_text_comes_back_as_the_editor_saved_it(tmp_path: Path) -> None:
    env = script(tmp_path, 'test "$1" = --wait && echo more >> "$2"')
    assert edited("one\n", env=env) == "one\nmore\n"


@pytest.mark.parametrize("env", [{"VISUAL": "false"}, {"EDITOR": "/no/such/editor"}])
def test_an_editor_that_fails_says_so(env: dict[str, str]) -> None:
    with pytest.raises(Unavailable) as refused:
        edited("one", env=env)
    assert (refused.value.code, refused.value.kept) == ("EDITOR", "your text as it was")
