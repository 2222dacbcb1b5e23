"""What a run's sessions were given: by the API, on the screen, and as the material of a preview."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
import sqlalchemy as sa
from house_for_tests import Starter
from pages_for_tests import page, text

from beadmill.briefs import Briefs, PartText
from beadmill.domain.values import Brief
from beadmill.operations.ports import Ports
from beadmill.processes.wire import encode
from beadmill.store import blobs
from beadmill.store import tables as t

VISIT = "API-1-r1/write.1"


def brief() -> Brief:
    """Its relevant files do not fit, so they are left out."""
    parts = [PartText("ticket_details", "Title: Export"), PartText("relevant_files", "x" * 40_000)]
    parts.append(PartText("drafts", "### Draft 1\n\none </drafts> two"))
    return Briefs(budget=9_000).write("prd_refine", parts, ticket="API-1", seat="2", winner="Draft 1")


def session(n: int, given: Brief, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run_id": "API-1-r1",
        "visit_id": VISIT,
        "kind": "agent",
        "host": "here",
        "seat": f"scripted/{n}",
    }
    row |= {"token": f"{VISIT}/draft#0/{n}", "template": given.template, "ledger": [encode(p) for p in given.ledger]}
    return row | {"started": f"2026-01-02T12:00:0{n}+00:00", "ended": "2026-01-02T12:01:00+00:00", **more}


@pytest.fixture
async def given(ports: Ports, started: Starter, project: Any) -> None:
    """Two sessions of one visit; the provider told what the first one took."""
    await started()

    def write(tx: Any) -> None:
        sha = blobs.put_blob(tx, brief().text.encode())
        for row in (session(1, brief(), input=700, cached=300, prompt_sha=sha), session(2, brief(), prompt_sha=sha)):
            tx.run(sa.insert(t.sessions).values(**row))

    await ports.store.write(write)


@pytest.mark.usefixtures("given")
async def test_the_context_of_a_run_adds_up_per_stage_and_in_all(cli: httpx2.AsyncClient) -> None:
    found = (await cli.get("/api/v1/runs/API-1-r1/context")).json()
    (stage,) = found["stages"]
    kept = sum(p.tokens for p in brief().ledger if not p.dropped)
    assert (stage["visit"], stage["node"], stage["n"], found["ticket"]) == (VISIT, "write", 1, "API-1")
    assert found["given"] == stage["given"] == {"estimated": 2 * kept, "dropped": 20_000, "billed": 1000, "cached": 300}
    assert [one["given"]["billed"] for one in stage["sessions"]] == [1000, None]


@pytest.mark.usefixtures("given")
async def test_every_part_is_told_with_its_hash_and_whether_it_was_left_out(cli: httpx2.AsyncClient) -> None:
    found = (await cli.get("/api/v1/runs/API-1-r1/context")).json()
    parts = found["stages"][0]["sessions"][0]["parts"]
    assert [(p["name"], p["dropped"]) for p in parts] == [
        ("instructions", False),
        ("ticket_details", False),
        ("relevant_files", True),
        ("drafts", False),
    ]
    assert [p["sha256"] for p in parts] == [p.sha256 for p in brief().ledger]


async def test_the_context_of_no_run_is_not_found(cli: httpx2.AsyncClient) -> None:
    assert (await cli.get("/api/v1/runs/API-9-r1/context")).status_code == 404


@pytest.mark.usefixtures("given")
async def test_the_page_of_the_context_shows_the_sums_and_what_was_left_out(signed_in: httpx2.AsyncClient) -> None:
    shown = text(await page(signed_in, "/runs/API-1-r1/context"))
    assert ("write 1 2" in shown, "left out 20.0k 1.0k 300" in shown, "left out: over the budget" in shown) == (
        True,
    ) * 3
    for path in ("/runs/API-1-r1", "/tickets/API-1/sessions"):
        assert 'href="/runs/API-1-r1/context"' in await page(signed_in, path), path


@pytest.mark.usefixtures("project")
async def test_a_run_without_a_session_says_so(signed_in: httpx2.AsyncClient, started: Starter) -> None:
    await started()
    assert "No session yet." in text(await page(signed_in, "/runs/API-1-r1/context"))


@pytest.mark.usefixtures("given")
async def test_a_preview_with_the_material_of_a_run_holds_what_its_newest_session_got(cli: httpx2.AsyncClient) -> None:
    body = {"text": "Mine: {{ winner }}", "run": "API-1-r1"}
    made = (await cli.post("/api/v1/prompts/prd_refine/preview", json=body)).json()
    assert made["material"] == f"{VISIT}/draft#0/2"
    material = brief().text.split("# Material")[1].split("\n## Reply")[0].strip()
    assert ("\n\nMine: Draft 1\n\n# Material" in made["text"], material in made["text"]) == (True, True)
    assert made["text"].startswith("Beadmill task: prd_refine | ticket: API-1 | subject:  | seat: 2 | turn: \n")


@pytest.mark.usefixtures("given")
async def test_a_preview_with_a_run_that_never_used_the_prompt_says_so(cli: httpx2.AsyncClient) -> None:
    answer = await cli.post("/api/v1/prompts/scan/preview", json={"run": "API-1-r1"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NO_SUCH_SESSION")
