"""What stopped a run: every stop stays readable, with how it was resolved."""

from __future__ import annotations

from typing import Any

import pytest
from house_for_tests import OWNER, Starter

from beadmill.errors import Invalid, NotFound, Unprocessable
from beadmill.operations import gates, occurrences, runs
from beadmill.operations.ports import Ports

RUN = "API-1-r1"


@pytest.fixture
async def blocked(started: Starter) -> Any:
    """A ticket whose node blocks each time."""
    return await started(title="Block")


async def again(ports: Ports, count: int) -> None:
    """The run is blocked for the ``count``-th time."""
    async for _ in ports.store.events.subscribe():
        found = await occurrences.listing(ports, RUN, actor=OWNER)
        if len(found) == count and found[-1].state == "open":
            return


async def resolved(ports: Ports) -> list[tuple[int, str, str, str, str | None]]:
    found = await occurrences.listing(ports, RUN, actor=OWNER)
    return [(one.number, one.resolution, one.by, one.note, one.resumed_to) for one in found]


async def test_a_stop_tells_what_happened_where_and_with_which_diagnostics(ports: Ports, blocked: Any) -> None:
    (stop,) = await occurrences.listing(ports, RUN, actor=OWNER)
    assert (stop.number, stop.node, stop.code, stop.message) == (1, "write", "NO_LUCK", "it does not work yet")
    assert (stop.details, stop.resolution, stop.resumed_to, stop.gate) == ({}, "", None, blocked.current.gates[0].id)


async def test_every_stop_stays_with_who_resolved_it_how_and_where_it_went_on(ports: Ports, blocked: Any) -> None:
    await runs.retry(ports, RUN, note="  look again\n", actor=OWNER)
    await again(ports, 2)
    (gate,) = (await runs.show(ports, RUN, actor=OWNER)).gates
    await gates.send_back(ports, gate.id, "write", etag=gate.etag, comment="from the start", actor=OWNER)
    await again(ports, 3)
    assert await resolved(ports) == [
        (1, "retry", "user:owner", "  look again\n", "write"),
        (2, "send_back", "user:owner", "from the start", "write"),
        (3, "", "", "", None),
    ]


async def test_a_stop_that_was_left_by_a_cancel_says_so(ports: Ports, blocked: Any) -> None:
    await runs.cancel(ports, RUN, actor=OWNER)
    assert [one[1] for one in await resolved(ports)] == ["canceled"]


@pytest.mark.parametrize(("note", "said"), [(" \n\t", "nothing but whitespace"), ("x" * 20_001, "20,001 characters")])
async def test_a_note_that_is_none_is_refused_and_nothing_is_tried(
    ports: Ports, blocked: Any, note: str, said: str
) -> None:
    gate = blocked.current.gates[0]
    with pytest.raises(Unprocessable, match=said):
        await runs.retry(ports, RUN, note=note, actor=OWNER)
    with pytest.raises(Unprocessable, match=said):
        await gates.answer(ports, gate.id, "retry", etag=gate.etag, note=note, actor=OWNER)
    assert [one[1] for one in await resolved(ports)] == [""]


async def test_a_note_of_the_longest_length_is_kept_as_it_is(ports: Ports, blocked: Any) -> None:
    await runs.retry(ports, RUN, note="x" * 20_000, actor=OWNER)
    assert (await resolved(ports))[0][3] == "x" * 20_000


async def test_what_is_not_continuable_is_not_continued(ports: Ports, blocked: Any) -> None:
    with pytest.raises(Invalid, match="'continue' is not one of retry"):
        await runs.retry(ports, RUN, choice="continue", actor=OWNER)


async def test_an_unknown_run_has_no_stops(ports: Ports) -> None:
    with pytest.raises(NotFound):
        await occurrences.listing(ports, "API-9-r1", actor=OWNER)
