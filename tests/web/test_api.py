from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from house_for_tests import CLASH, GAP, OWNER, Starter, gappy, until

from beadmill.operations import gates
from beadmill.operations.ports import Ports
from beadmill.operations.routes import ROUTES


async def made(cli: httpx2.AsyncClient, **more: Any) -> Any:
    return (await cli.post("/api/v1/tickets", json={"project": "API", "title": "One", **more})).json()


@pytest.mark.usefixtures("project")
async def test_a_double_click_makes_one_ticket(cli: httpx2.AsyncClient) -> None:
    body = {"project": "API", "title": "One"}
    clicks = [cli.post("/api/v1/tickets", json=body, headers={"Idempotency-Key": "k"}) for _ in range(5)]
    answers = await asyncio.gather(*clicks)
    assert {(a.status_code, a.json()["key"]) for a in answers} == {(201, "API-1")}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/tickets/API-9", 404, "TICKET_NOT_FOUND"),
        ("GET", "/api/v1/nothing", 404, "NO_SUCH_ADDRESS"),
        ("DELETE", "/api/v1/tickets", 405, "METHOD"),
        ("GET", "/api/v1/tickets?column=middle", 422, "VALIDATION"),
        ("GET", "/api/v1/tickets?cursor=zzz", 400, "CURSOR"),
        ("GET", "/api/v1/tickets?limit=9999", 400, "LIMIT"),
        ("GET", "/api/v1/events?topics=weather", 400, "TOPICS"),
        ("POST", "/api/v1/tickets", 422, "VALIDATION"),
    ],
)
async def test_every_error_has_the_envelope(
    cli: httpx2.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    answer = await cli.request(method, path)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert sorted(error) == ["code", "details", "kept", "message", "next"]


async def test_a_nul_character_in_any_text_is_refused(cli: httpx2.AsyncClient) -> None:
    body = {"project": "API", "title": "One", "overrides": {"council": {"seats": ["scripted/a\0"]}}}
    answer = await cli.post("/api/v1/tickets", json=body)
    assert (answer.status_code, "NUL character" in answer.json()["error"]["message"]) == (422, True)


async def test_an_unknown_field_is_refused_by_name(cli: httpx2.AsyncClient) -> None:
    answer = await cli.post("/api/v1/tickets", json={"project": "API", "title": "One", "prio": 1})
    assert answer.json()["error"]["details"] == {
        "fields": [{"field": "prio", "message": "Extra inputs are not permitted"}]
    }


async def test_a_gate_is_answered_once_by_exactly_what_was_seen(
    cli: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    ticket = await started()
    gate = (await cli.get("/api/v1/gates")).json()["items"][0]
    url = f"/api/v1/gates/{quote(gate['id'])}"
    shown = await cli.get(url)
    assert shown.headers["etag"] == f'"{gate["etag"]}"'
    body = {"choice": "approve"}
    none = await cli.post(f"{url}/answer", json=body)
    wrong = await cli.post(f"{url}/answer", json=body, headers={"If-Match": '"0"'})
    good = {"If-Match": shown.headers["etag"], "Idempotency-Key": "one"}
    first = await cli.post(f"{url}/answer", json=body, headers=good)
    again = await cli.post(f"{url}/answer", json=body, headers=good)
    other = await cli.post(f"{url}/answer", json=body, headers={**good, "Idempotency-Key": "two"})
    assert [a.status_code for a in (none, wrong, first, again, other)] == [428, 409, 200, 200, 409]
    assert first.json()["decision"] == again.json()["decision"]
    await until(ports, ticket.key, lambda t: t.current.nodes[0].state == "done")


async def test_a_gate_with_gaps_takes_its_own_choice_and_the_trail_tells_it(
    cli: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    ticket = await started()
    gate = await gappy(ports, ticket.current.gates[0])
    url = f"/api/v1/gates/{quote(gate.id)}/answer"
    plain = await cli.post(url, json={"choice": "approve"}, headers={"If-Match": gate.etag})
    good = await cli.post(url, json={"choice": "approve_with_gaps", "note": "known"}, headers={"If-Match": gate.etag})
    assert (plain.status_code, plain.json()["error"]["details"]["gaps"]) == (409, [GAP, CLASH])
    assert good.json()["decision"]["acknowledged"] == [GAP, CLASH]
    (line,) = (await cli.get("/api/v1/trail", params={"ticket": ticket.key})).json()["lines"]
    assert (line["choice"], line["reason"], line["acknowledged"]) == ("approve_with_gaps", "known", [GAP, CLASH])


async def test_an_approved_document_is_edited_and_approved_in_one_request(
    cli: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    ticket = await started()
    gate = ticket.current.gates[0]
    await gates.answer(ports, gate.id, "approve", etag=gate.etag, actor=OWNER)
    await until(ports, ticket.key, lambda t: t.waits > 0 and t.current.gates[0].id != gate.id)
    row = (await cli.get(f"/api/v1/artifacts?ticket={ticket.key}&kind=prd")).json()["items"][0]
    text = (await cli.get(f"/api/v1/artifacts/{row['row']}")).json()["text"].replace("Do it", "Do it well")
    body, url = {"text": text, "approve": True, "note": "better"}, f"/api/v1/artifacts/{row['row']}"
    none = await cli.put(url, json=body)
    said = [await cli.put(url, json=body, headers={"If-Match": row["sha256"], "Idempotency-Key": "k"}) for _ in "ab"]
    assert [none.status_code, *(one.status_code for one in said)] == [428, 200, 200]
    assert [one.json()["restarted"] for one in said] == [["API-1-r1/check.2"]] * 2
    late = await cli.put(url, json=body, headers={"If-Match": row["sha256"]})
    assert (late.status_code, late.json()["error"]["details"]["by"]) == (409, "user:owner")


async def test_a_saved_edit_rebinds_the_gate_and_the_old_etag_is_stale(
    cli: httpx2.AsyncClient, started: Starter
) -> None:
    ticket = await started()
    gate = ticket.current.gates[0]
    row = (await cli.get(f"/api/v1/artifacts?ticket={ticket.key}&kind=prd")).json()["items"][0]
    shown = await cli.get(f"/api/v1/artifacts/{row['row']}")
    text = shown.json()["text"].replace("Do it", "Do it well")
    none = await cli.put(f"/api/v1/artifacts/{row['row']}", json={"text": text})
    edited = await cli.put(
        f"/api/v1/artifacts/{row['row']}", json={"text": text}, headers={"If-Match": shown.headers["etag"]}
    )
    assert (none.status_code, edited.status_code, edited.json()["version"]) == (428, 200, 2)
    again = await cli.put(
        f"/api/v1/artifacts/{row['row']}", json={"text": text}, headers={"If-Match": shown.headers["etag"]}
    )
    assert again.json()["error"]["details"]["by"] == "user:owner"
    url = f"/api/v1/gates/{quote(gate.id)}/answer"
    stale = await cli.post(url, json={"choice": "approve"}, headers={"If-Match": gate.etag})
    fresh = edited.json()["gates"][0]["etag"]
    good = await cli.post(url, json={"choice": "approve"}, headers={"If-Match": fresh})
    assert (stale.status_code, good.status_code) == (409, 200)
    assert good.json()["decision"]["saw"][0]["row"] == edited.json()["row"]


async def test_a_broken_edit_says_the_line_and_keeps_the_document(cli: httpx2.AsyncClient, started: Starter) -> None:
    ticket = await started()
    row = (await cli.get(f"/api/v1/artifacts?ticket={ticket.key}")).json()["items"][0]
    answer = await cli.put(
        f"/api/v1/artifacts/{row['row']}", json={"text": "product: [\n"}, headers={"If-Match": row["sha256"]}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "DOCUMENT_INVALID")
    assert len((await cli.get(f"/api/v1/artifacts?ticket={ticket.key}")).json()["items"]) == 1


async def test_a_diff_shows_what_the_edit_changed(cli: httpx2.AsyncClient, started: Starter) -> None:
    ticket = await started()
    row = (await cli.get(f"/api/v1/artifacts?ticket={ticket.key}")).json()["items"][0]
    shown = (await cli.get(f"/api/v1/artifacts/{row['row']}")).json()
    edited = await cli.put(
        f"/api/v1/artifacts/{row['row']}",
        json={"text": shown["text"].replace("Do it", "Do it well")},
        headers={"If-Match": row["sha256"]},
    )
    diff = (await cli.get(f"/api/v1/artifacts/{edited.json()['row']}/diff")).json()
    changed = [line for line in diff["diff"].splitlines() if line[0] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == ["-  problem_statement: Do it", "+  problem_statement: Do it well"]


async def test_two_windows_saving_one_draft_do_not_overwrite_each_other(
    cli: httpx2.AsyncClient, started: Starter
) -> None:
    ticket = await started()
    url = f"/api/v1/drafts/{quote(ticket.current.gates[0].id)}"
    first = await cli.put(url, json={"body": {"a": 1}, "revision": 0})
    second = await cli.put(url, json={"body": {"a": 2}, "revision": 0})
    kept = await cli.get(url)
    assert (first.json()["revision"], second.status_code, kept.json()["body"]) == (1, 409, {"a": 1})


async def test_a_blocked_run_is_retried(cli: httpx2.AsyncClient, ports: Ports, started: Starter) -> None:
    ticket = await started(title="Block")
    blocked = (await cli.get("/api/v1/gates?kind=blocked")).json()["items"]
    assert [gate["ticket"] for gate in blocked] == [ticket.key]
    answer = await cli.post(f"/api/v1/runs/{ticket.run}/retry", json={"note": "once more"})
    assert answer.status_code == 200
    again = await until(ports, ticket.key, lambda t: t.waits == 1 and t.current.gates[0].id != blocked[0]["id"])
    assert again.status == "blocked_error"
    receipt = (await cli.get(f"/api/v1/gates/{quote(blocked[0]['id'])}")).json()["decision"]
    assert (receipt["choice"], receipt["note"], receipt["door"]) == ("retry", "once more", "cli")


async def test_a_gate_sends_the_run_back_and_its_node_starts_again(
    cli: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    ticket = await started()
    gate = ticket.current.gates[0]
    url = f"/api/v1/gates/{quote(gate.id)}/send-back"
    none = await cli.post(url, json={"target": "write"})
    back = await cli.post(url, json={"target": "write", "comment": "no"}, headers={"If-Match": gate.etag})
    assert (none.status_code, back.status_code) == (428, 200)
    found = await until(
        ports, ticket.key, lambda t: (t.current.visits[-1].n, t.current.visits[-1].state) == (2, "parked")
    )
    assert [(v.n, v.state, v.comment) for v in found.current.visits] == [(1, "superseded", ""), (2, "parked", "no")]


async def test_status_counts_the_board(cli: httpx2.AsyncClient, started: Starter) -> None:
    await started()
    await made(cli)
    view = (await cli.get("/api/v1/status")).json()
    assert view["tickets"] == {"todo": 1, "needs_input": 1, "in_progress": 0, "done": 0}
    assert [line["name"] for line in view["health"]] == ["git", "home", "disk", "sandbox"]


async def test_a_sop_is_linted_with_line_and_column(cli: httpx2.AsyncClient) -> None:
    text = "format: 1\ntitle: X\nstart: a\nnodes:\n  - id: a\n    kind: nothing\nedges: []\n"
    answer = (await cli.post("/api/v1/sops/lint", json={"text": text})).json()
    assert (answer["ok"], answer["problems"][0]["line"]) == (False, 5)


async def test_settings_say_where_they_come_from_and_hide_the_environment(
    cli: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEADMILL_PORT", "7421")
    view = (await cli.get("/api/v1/config")).json()
    assert (view["sources"]["port"], view["sources"]["host"]) == ("environment BEADMILL_PORT", "default")


async def test_every_operation_is_in_the_description(cli: httpx2.AsyncClient) -> None:
    description = (await cli.get("/api/openapi.json")).json()
    served = {op["operationId"] for methods in description["paths"].values() for op in methods.values()}
    assert (served, description["openapi"][:3]) == (set(ROUTES), "3.1")


async def test_the_documentation_page_names_every_address(cli: httpx2.AsyncClient) -> None:
    page = (await cli.get("/api/docs")).text
    assert [name for name in ROUTES if f"{name}." not in page] == []


async def test_a_text_is_checked_without_being_saved(cli: httpx2.AsyncClient, started: Starter) -> None:
    ticket = await started()
    row = (await cli.get(f"/api/v1/artifacts?ticket={ticket.key}")).json()["items"][0]["row"]
    answers = [
        (await cli.post(f"/api/v1/artifacts/{row}/check", json={"text": text})).json()
        for text in ("colour: red\n", (await cli.get(f"/api/v1/artifacts/{row}")).json()["text"])
    ]
    assert [answer["valid"] for answer in answers] == [False, True]
    assert answers[0]["problems"][0] == {
        "line": 1,
        "column": 1,
        "reason": "unknown key colour",
        "text": "colour: red",
        "path": "colour",
    }
    assert len((await cli.get(f"/api/v1/artifacts?ticket={ticket.key}")).json()["items"]) == 1


async def test_a_draft_is_forgotten_by_the_window_that_has_it(cli: httpx2.AsyncClient, started: Starter) -> None:
    ticket = await started()
    target = f"/api/v1/drafts/{(await cli.get(f'/api/v1/artifacts?ticket={ticket.key}')).json()['items'][0]['row']}"
    saved = (await cli.put(target, json={"body": {"text": "x"}, "revision": 0})).json()["revision"]
    stale = await cli.delete(f"{target}?revision=0")
    gone = await cli.delete(f"{target}?revision={saved}")
    assert [saved, stale.status_code, gone.status_code] == [1, 409, 200]
    assert (await cli.get(target)).json()["body"] is None
