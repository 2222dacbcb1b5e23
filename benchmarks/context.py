"""Input tokens of the demo's ticket as Beadmill briefs it, against one long conversation that carries everything forward.

``python -m benchmarks.context [--home <home of a finished run>] [--json] [--keep]``; ``--keep`` writes results/context.json.
Both are reckoned from the same briefs and replies, at four bytes a token. What an agent reads by its own tools comes on
top in both and is not counted: here it is scripted. A session that goes on in its conversation counts all that was said
in it before, as a provider does. The conversations:

- ``repeating``: every brief as it is, one behind the other, each turn sending all briefs and replies before it again.
- ``lean``: the same, but what was said or replied once is not given again: instructions, the person's words and what
  programs reported are new, documents of the model stand in its replies already.
- ``single``: as ``lean``, with one seat that drafts once: no votes, no refinement, no other drafts. It does less: nobody
  compares three drafts. It is what a person would do in one chat.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beadmill.demo import material
from beadmill.domain.values import estimate_tokens
from benchmarks import world

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESULT = Path(__file__).parent / "results" / "context.json"
CACHED = 0.1  # price of input that the provider has seen before, against new input; the usual discount is this or less
BARS = {
    "planned_tokens": "what Beadmill sent",
    "by_repeating": "below 1: Beadmill sends less than the conversation",
    "by_lean": "the same against the conversation that repeats nothing",
    "by_single": "the same against one chat of one seat that drafts once",
    "by_lean_cached": "when what was said before costs a tenth",
    "by_single_cached": "when what was said before costs a tenth",
}
# Parts that no earlier reply holds: the person's words, and what programs reported.
NEW = frozenset(
    [
        "ticket_details",
        "answers",
        "user_answers",
        "skip_reasons",
        "execution_setup_profile",
        "workspace_locations",
        "failure",
        "error_context",
        "bead_notes",
        "tests",
        "final_test_report",
        "integration_report",
        "files",
        "diff",
    ]
)


@dataclass(frozen=True, slots=True)
class Turn:
    """Tokens. ``parts`` by (name, sha256), the instructions among them."""

    template: str
    seat: str
    conversation: str
    brief: int
    reply: int
    parts: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """Input tokens of all turns: ``new`` ones, and ``again`` those that the same conversation held before."""

    new: int
    again: int
    largest: int

    @property
    def all(self) -> int:
        return self.new + self.again

    @property
    def weighted(self) -> float:
        return self.new + CACHED * self.again


def turns(home: Path) -> list[Turn]:
    query = (
        "select s.template, s.seat, s.token, s.end, s.ledger, b.data from sessions s join blobs b on b.sha256 = s.prompt_sha"
        " where s.kind = 'agent' order by s.started, s.token"
    )
    return [_turn(row) for row in world.rows(home, query)]


def _turn(row: tuple[Any, ...]) -> Turn:
    template, seat, token, end, ledger, brief = row
    ended = json.loads(end)
    conversation = ended["session"]["conversation"] or token
    parts = tuple((p["name"], p["sha256"], p["tokens"]) for p in json.loads(ledger) if not p["dropped"])
    return Turn(
        template, seat, conversation, estimate_tokens(brief.decode()), estimate_tokens(ended.get("text") or ""), parts
    )


def planned(path: Sequence[Turn]) -> Sent:
    """Every session by itself; one that goes on sends what its conversation held."""
    held: dict[str, int] = {}
    new = again = largest = 0
    for turn in path:
        before = held.get(turn.conversation, 0)
        new, again, largest = new + turn.brief, again + before, max(largest, before + turn.brief)
        held[turn.conversation] = before + turn.brief + turn.reply
    return Sent(new, again, largest)


def conversation(path: Sequence[Turn], given: Callable[[Turn], int]) -> Sent:
    """All turns in one conversation; ``given`` is what a turn newly says."""
    held = new = again = largest = 0
    for turn in path:
        said = given(turn)
        new, again, largest = new + said, again + held, max(largest, held + said)
        held += said + turn.reply
    return Sent(new, again, largest)


def not_yet_said() -> Callable[[Turn], int]:
    """Only parts whose text was not given before and that no reply holds."""
    said: set[str] = set()

    def given(turn: Turn) -> int:
        fresh = [p for p in turn.parts if p[1] not in said and (p[0] in NEW or p[0].startswith("instructions"))]
        said.update(sha for _, sha, _ in fresh)
        return sum(tokens for _, _, tokens in fresh)

    return given


def of_one_seat(path: Sequence[Turn]) -> list[Turn]:
    first: dict[str, str] = {}
    kept: list[Turn] = []
    for turn in path:
        if turn.template.endswith(("_vote", "_refine")):
            continue
        drafts = turn.template.endswith("_draft") or turn.template == "full_answers"
        if not drafts or first.setdefault(turn.template, turn.seat) == turn.seat:
            kept.append(turn)
    return kept


def compared(home: Path) -> dict[str, Any]:
    path = turns(home)
    ours = planned(path)
    theirs = {
        "repeating": conversation(path, lambda turn: turn.brief),
        "lean": conversation(path, not_yet_said()),
        "single": conversation(of_one_seat(path), not_yet_said()),
    }
    billed, cached = world.rows(home, "select sum(input + cached), sum(cached) from sessions")[0]
    out: dict[str, Any] = {
        "sessions": len(path),
        "planned_tokens": ours.all,
        "planned_largest_turn": ours.largest,
        "billed_input": billed,
        "billed_cached": cached,
        "reply_tokens": sum(turn.reply for turn in path),
    }
    for name, sent in theirs.items():
        out |= {f"{name}_tokens": sent.all, f"{name}_largest_turn": sent.largest}
        out |= {f"by_{name}": round(ours.all / sent.all, 3)}
        out |= {f"by_{name}_cached": round(ours.weighted / sent.weighted, 3)}
    return out


async def run(root: Path) -> Path:
    """The demo's whole ticket with three scripted seats. Returns the home."""
    place = await world.make(root, {"scripted": {"scenario": str(root / "scenario.json")}}, material.scenario())
    daemon = world.Daemon(place.home)
    await daemon.start()
    try:
        async with daemon.api() as api:
            await world.attach(api, place)
            key = await world.ticket(api, ["scripted/alpha", "scripted/beta", "scripted/gamma"])
            await world.through(api, place.home, key)
    finally:
        daemon.stop()
    assert world.one(place.home, "select state from changes") == "merged"
    return place.home


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true", help="write results/context.json")
    parser.add_argument("--home", type=Path, help="a home whose run is over, instead of a run of the demo")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = compared(wanted.home or asyncio.run(run(Path(folder))))
    if wanted.keep:
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
    world.show(result, BARS, as_json=wanted.json)


if __name__ == "__main__":
    main()
