from __future__ import annotations

from typing import Any

import httpx2
import pytest
from clients_for_tests import BASE, BEARER, client_of
from sqlalchemy import insert, update

from beadmill.operations import logins
from beadmill.operations.ports import Ports
from beadmill.store import tables as t
from beadmill.web.app import Web
from beadmill.web.security import BODY, Meter, Rates


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/docs", "/api/openapi.json", "/", "/nothing", "/static/x.js"])
async def test_c80_nothing_is_answered_without_a_credential(nobody: httpx2.AsyncClient, path: str) -> None:
    answer = await nobody.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED")


async def test_a_page_says_in_words_how_to_sign_in(nobody: httpx2.AsyncClient) -> None:
    answer = await nobody.get("/", headers={"Accept": "text/html"})
    assert (answer.status_code, "run: beadmill open" in answer.text) == (401, True)


@pytest.mark.parametrize(
    "host", ["evil.example:7420", "127.0.0.1", "127.0.0.1:7421", "0x7f.1:7420", "2130706433:7420", "127.0.0.1:0", ""]
)
async def test_c80_a_foreign_host_name_is_refused_even_with_the_token(cli: httpx2.AsyncClient, host: str) -> None:
    answer = await cli.get("/api/v1/status", headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "HOST")


async def test_a_link_signs_in_once(cli: httpx2.AsyncClient, nobody: httpx2.AsyncClient) -> None:
    token = (await cli.post("/api/v1/links")).json()["token"]
    same = {"Sec-Fetch-Site": "same-origin"}
    first = await nobody.post("/sign-in", json={"token": token}, headers=same)
    second = await nobody.post("/sign-in", json={"token": token}, headers=same)
    assert (first.status_code, second.status_code) == (200, 403)
    cookie = first.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("beadmill_7420=", "httponly", "samesite=strict", "path=/"))


async def test_an_old_link_does_not_sign_in(cli: httpx2.AsyncClient, nobody: httpx2.AsyncClient, ports: Ports) -> None:
    token = (await cli.post("/api/v1/links")).json()["token"]
    await ports.store.write(lambda tx: tx.run(update(t.logins).values(expires="2020-01-01T00:00:00.000000+00:00")))
    answer = await nobody.post("/sign-in", json={"token": token}, headers={"Sec-Fetch-Site": "same-origin"})
    assert answer.json()["error"]["code"] == "LINK_SPENT"


async def test_no_token_is_stored_as_it_is(
    cli: httpx2.AsyncClient, signed_in: httpx2.AsyncClient, ports: Ports
) -> None:
    link = (await cli.post("/api/v1/links")).json()["token"]
    session = signed_in.cookies["beadmill_7420"]
    rows = await ports.store.read(lambda conn: conn.execute(t.logins.select()).all())
    stored = {row.token_hash for row in rows}
    assert stored == {logins.hashed(link), logins.hashed(session)}


async def test_a_signed_in_browser_reads_and_writes(signed_in: httpx2.AsyncClient) -> None:
    read = await signed_in.get("/api/v1/status")
    write = await signed_in.post("/api/v1/sops/lint", json={"name": "hello"}, headers={"Origin": BASE})
    assert (read.status_code, write.status_code) == (200, 200)


CROSS: list[tuple[str, dict[str, str]]] = [
    ("POST", {"Origin": "https://evil.example"}),
    ("POST", {"Origin": "null"}),
    ("POST", {"Sec-Fetch-Site": "cross-site"}),
    ("POST", {"Sec-Fetch-Site": "none"}),
    ("POST", {"Origin": BASE, "Sec-Fetch-Site": "cross-site"}),
    ("GET", {"Sec-Fetch-Site": "cross-site"}),
    ("GET", {"Sec-Fetch-Site": "same-site"}),
]


async def test_c80_a_cookie_from_another_site_is_refused_even_beside_a_bearer(signed_in: httpx2.AsyncClient) -> None:
    cases = [(method, {**headers, **bearer}) for method, headers in CROSS for bearer in ({}, BEARER)]
    answers = [await signed_in.request(method, "/api/v1/status", headers=headers) for method, headers in cases]
    assert [(a.status_code, a.json()["error"]["code"]) for a in answers] == [(403, "ORIGIN")] * 14


async def test_c80_a_page_elsewhere_starts_nothing_with_a_body_that_needs_no_permission(
    nobody: httpx2.AsyncClient,
) -> None:
    simple = {"Content-Type": "text/plain"}
    origins: list[dict[str, str]] = [{}, {"Origin": "https://evil.test"}]
    answers = [
        await nobody.post("/api/v1/sops/lint", content='{"name": "hello"}', headers=simple | one) for one in origins
    ]
    streams = [await nobody.get("/events", headers=one) for one in origins]
    assert [answer.status_code in (401, 403) for answer in (*answers, *streams)] == [True] * 4


async def test_a_bearer_does_not_excuse_a_cookie_that_does_not_hold(cli: httpx2.AsyncClient) -> None:
    answer = await cli.get("/api/v1/status", headers={"Cookie": "beadmill_7420=stale", "Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 401


async def test_a_good_cookie_does_not_excuse_a_bad_bearer(signed_in: httpx2.AsyncClient) -> None:
    answer = await signed_in.get("/api/v1/status", headers={"Authorization": "Bearer wrong"})
    assert answer.status_code == 401


async def test_signing_out_ends_the_session(signed_in: httpx2.AsyncClient) -> None:
    session = signed_in.cookies["beadmill_7420"]
    await signed_in.post("/sign-out", headers={"Origin": BASE})
    answer = await signed_in.get("/api/v1/status", headers={"Cookie": f"beadmill_7420={session}"})
    assert answer.status_code == 401


async def test_an_api_token_has_its_scopes_and_can_be_revoked(web: Web, ports: Ports) -> None:
    def give(tx: Any) -> None:
        tx.run(insert(t.users).values(id=9, name="ann", created=tx.now))
        row = {"name": "bot", "token_hash": logins.hashed("bot-token"), "scopes": ["read"], "created": tx.now}
        tx.run(insert(t.api_tokens).values(user_id=9, **row))

    await ports.store.write(give)
    async with client_of(web, {"Authorization": "Bearer bot-token"}) as bot:
        read = await bot.get("/api/v1/status")
        write = await bot.post("/api/v1/tickets", json={"project": "API", "title": "One"})
        await ports.store.write(lambda tx: tx.run(update(t.api_tokens).values(revoked=tx.now)))
        revoked = await bot.get("/api/v1/status")
    assert (read.status_code, write.status_code, revoked.status_code) == (200, 403, 401)


async def test_every_answer_has_the_security_headers_and_none_of_cors(
    cli: httpx2.AsyncClient, nobody: httpx2.AsyncClient
) -> None:
    ours = {"Origin": "https://evil.example"}
    for answer in (await cli.get("/api/v1/status", headers=ours), await nobody.get("/")):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_the_sign_in_page_runs_its_own_script_only(nobody: httpx2.AsyncClient) -> None:
    answer = await nobody.get("/sign-in")
    policy = answer.headers["content-security-policy"]
    assert (answer.status_code, "script-src 'sha256-" in policy, "unsafe" in policy) == (200, True, False)


async def test_a_body_over_two_mebibytes_is_refused_announced_or_not(cli: httpx2.AsyncClient) -> None:
    async def endless() -> Any:
        for _ in range(5):
            yield b"x" * (BODY // 4)

    announced = await cli.post("/api/v1/tickets", content=b"x" * (BODY + 1))
    chunked = await cli.post("/api/v1/tickets", content=endless())
    assert (announced.status_code, chunked.status_code) == (413, 413)


async def test_too_many_reads_in_a_minute_are_refused_per_client_and_kind(web: Web, ports: Ports) -> None:
    small = Web(ports, web.door, meter=Meter(Rates(reads=2), now=lambda: 87.5))
    async with client_of(small, BEARER) as cli:
        reads = [await cli.get("/api/v1/sops/hello") for _ in range(3)]
        write = await cli.post("/api/v1/sops/lint", json={"name": "hello"})
    assert [a.status_code for a in reads] == [200, 200, 429]
    assert (reads[2].headers["retry-after"], write.status_code) == ("33", 200)


async def test_no_policy_of_any_answer_lets_unknown_inline_code_or_style_run(cli: httpx2.AsyncClient) -> None:
    paths = ("/sign-in", "/nowhere", "/", "/api/v1/status", "/api/docs")
    policies = [(await cli.get(path)).headers["content-security-policy"] for path in paths]
    assert [("unsafe" in policy, "default-src 'none'" in policy) for policy in policies] == [(False, True)] * len(paths)
