from __future__ import annotations

from pathlib import Path

from beadmill.agents import _spent


def test_what_a_conversation_used_is_known_to_its_agent_alone(tmp_path: Path) -> None:
    _spent.keep(tmp_path, "codex", "0123-ab", {"input": 5})
    found = [_spent.known(tmp_path, agent, "0123-ab") for agent in ("codex", "claude_code")]
    assert (found, _spent.known(tmp_path, "codex", "")) == ([{"input": 5}, None], None)


def test_a_conversation_with_a_strange_name_stays_in_its_folder(tmp_path: Path) -> None:
    _spent.keep(tmp_path, "codex", "../../../x", {"input": 5})
    assert [p.relative_to(tmp_path) for p in tmp_path.rglob("*.json")] == [Path("runtime/spent/codex-x.json")]
