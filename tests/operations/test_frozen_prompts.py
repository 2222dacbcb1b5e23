"""A run keeps the prompts it started with: over an edit, a restart, and until a rerun."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from house_for_tests import OWNER, Nothing, prd, served, starter, until

from beadmill.artifacts.prd import Prd
from beadmill.briefs import Briefs, PartText
from beadmill.domain.values import SYSTEM, GateKind, GateRequest, Outcome
from beadmill.engine.port import NodeSpec, Visit
from beadmill.operations import artifacts, gates, projects, runs, tickets, views
from beadmill.operations.ports import Ports


class BriefNode:
    """Waits for a person first; the PRD then tells what a session would have been given, and by which text."""

    spec = NodeSpec("write", Nothing, frozenset({"approved"}), writes=(Prd,))

    def __init__(self, home: Path) -> None:
        self.briefs = Briefs(home / "prompts")

    async def visit(self, v: Visit, cfg: Nothing, /) -> Outcome:
        await v.ask("begin", GateRequest(GateKind.APPROVE, "Begin?", ("go",)))
        brief = self.briefs.within(v.settings.context_tokens, v.prompts).write(
            "scan", [PartText("ticket_details", "x")]
        )
        told = brief.text.split("\n\n")[1], brief.ledger[0].name, brief.ledger[0].note
        ref = await v.put(prd(" | ".join(told)), by=SYSTEM)
        answer = await v.ask("end", GateRequest(GateKind.APPROVE, "End?", ("approve",), shows=(ref,)))
        return Outcome("approved", made=answer.saw)


@asynccontextmanager
async def house(home: Path) -> AsyncIterator[Ports]:
    async with served(home, BriefNode(home)) as built:
        yield built.ports


def write(home: Path, text: str) -> None:
    (home / "prompts").mkdir(exist_ok=True)
    (home / "prompts" / "scan.md.j2").write_text(text)


async def go_on(ports: Ports, ticket: str = "API-1") -> str:
    """Answers the first gate and returns what the session would have been given."""
    await _answer(ports, ticket, "go")
    await until(ports, ticket, lambda found: any(gate.title == "End?" for gate in found.current.gates))
    run = await tickets.current_run(ports, ticket)
    return str((await _newest(ports, run)).document["product"]["problem_statement"])


async def _newest(ports: Ports, run: str) -> views.ArtifactView:
    rows = (await artifacts.listing(ports, run=run, actor=OWNER)).items
    return await artifacts.show(ports, rows[-1].row, actor=OWNER)


async def _answer(ports: Ports, ticket: str, choice: str) -> None:
    (gate,) = (await gates.listing(ports, ticket=ticket, actor=OWNER)).items
    await gates.answer(ports, gate.id, choice=choice, etag=gate.etag, actor=OWNER)


@pytest.fixture
async def begun(tmp_path: Path, repo: Path) -> Path:
    """A home whose ticket waits at its first gate, started with the edit "Old words."; its daemon is gone."""
    home = tmp_path / "home"
    async with house(home) as ports:
        write(home, "Old words.")
        await projects.add(ports, str(repo), short="API", actor=OWNER)
        await starter(ports)()
    return home


async def test_an_edit_after_the_start_does_not_reach_the_run_not_even_after_a_restart(begun: Path) -> None:
    write(begun, "New words.")
    async with house(begun) as ports:
        assert await go_on(ports) == "Old words. | instructions (edited) | "


async def test_a_run_keeps_its_edit_when_it_is_reverted_meanwhile(begun: Path) -> None:
    (begun / "prompts" / "scan.md.j2").unlink()
    async with house(begun) as ports:
        assert await go_on(ports) == "Old words. | instructions (edited) | "


async def test_a_run_that_starts_after_the_edit_uses_it(begun: Path) -> None:
    write(begun, "New words.")
    async with house(begun) as ports:
        await starter(ports)(title="Another")
        assert await go_on(ports, "API-2") == "New words. | instructions (edited) | "


async def test_a_rerun_is_a_new_run_and_takes_the_new_edit(begun: Path) -> None:
    write(begun, "New words.")
    async with house(begun) as ports:
        await go_on(ports)
        await tickets.cancel(ports, "API-1", actor=OWNER)
        await runs.rerun(ports, "API-1-r1", "write", actor=OWNER)
        await until(ports, "API-1", lambda found: found.waits > 0)
        assert await go_on(ports) == "New words. | instructions (edited) | "


async def test_a_broken_file_blocks_no_run_and_is_told_in_its_ledger(begun: Path) -> None:
    write(begun, "{{ nobody }}")
    async with house(begun) as ports:
        await starter(ports)(title="Another")
        said = await go_on(ports, "API-2")
    assert said.endswith(
        "| the built-in text was given, since the edit cannot be used: scan: line 1: 'nobody' is undefined"
    )


async def test_two_runs_with_the_same_edit_share_one_text(begun: Path) -> None:
    async with house(begun) as ports:
        await starter(ports)(title="Another")
        works = await asyncio.gather(*(runs.show(ports, f"API-{n}-r1", actor=OWNER) for n in (1, 2)))
    assert works[0].work["prompts"] == works[1].work["prompts"] != {}
