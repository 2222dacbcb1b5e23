"""What a service's bad answers become: each its own error, nothing done twice, the token nowhere but in its header."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from beadmill import redact
from beadmill.errors import BeadmillError, Refused, Unavailable
from beadmill.forges.contract import ChangeDraft, ChangeRef
from tests.forges.fakes.github import GitHubHub
from tests.forges.fakes.hub import TOKEN, Told
from tests.forges.worlds import NOW, Hosted, variable

Git = Callable[..., str]
only = pytest.mark.parametrize
FULL = {"message": "API rate limit exceeded"}
BUSY = {"message": "You have exceeded a secondary rate limit"}


async def refusal(there: Hosted, branch: str = "x") -> BeadmillError:
    with pytest.raises(BeadmillError) as caught:
        await there.forge.find(branch)
    return caught.value


async def test_c73_an_expired_token_is_named_with_its_host(there: Hosted) -> None:
    there.hub.token = "another"
    error = await refusal(there)
    assert (error.code, error.details) == ("FORGE_AUTH", {"host": there.hub.url.removeprefix("http://")})
    assert not (await there.forge.probe()).ok


async def test_c73_one_change_that_wants_another_sign_in_says_so(there: Hosted, pushed: ChangeDraft) -> None:
    await there.forge.put(pushed)
    there.hub.next("GET", "(pulls|merge_requests)/1$", there.hub.refused(401, "Unauthorized"))
    with pytest.raises(Unavailable) as caught:
        await there.forge.read(ChangeRef(1))
    assert (caught.value.code, "reading change #1" in caught.value.message) == ("FORGE_AUTH", True)


async def test_c73_a_repository_that_is_not_there_is_no_missing_change(there: Hosted, git: Git) -> None:
    git(there.checkout, "remote", "set-url", "origin", f"{there.hub.url}/team/other.git")
    with pytest.raises(BeadmillError) as caught:
        await there.forge.read(ChangeRef(1))
    assert (caught.value.code, caught.value.details["repository"]) == ("FORGE_NOT_FOUND", "team/other")


@only("there", ["github"], indirect=True)
async def test_c73_a_404_for_a_missing_scope_names_the_scope(there: Hosted, git: Git) -> None:
    assert isinstance(there.hub, GitHubHub)
    there.hub.scopes = "gist"
    git(there.checkout, "remote", "set-url", "origin", f"{there.hub.url}/team/hidden.git")
    with pytest.raises(Refused) as caught:
        await there.forge.read(ChangeRef(1))
    assert (caught.value.code, caught.value.details["wanted"]) == ("FORGE_SCOPE", "repo")


async def test_c73_a_right_that_the_token_lacks_is_said(there: Hosted, pushed: ChangeDraft) -> None:
    there.hub.next("POST", "(pulls|merge_requests)$", there.hub.refused(403, "Resource not accessible by this token"))
    with pytest.raises(Refused) as caught:
        await there.forge.put(pushed)
    assert (caught.value.code, caught.value.kept.startswith("What was pushed")) == ("FORGE_SCOPE", True)


async def test_c73_a_used_up_limit_says_until_when(there: Hosted) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW) + 900)}
    there.hub.next("GET", ".", Told(403, FULL, headers))
    error = await refusal(there)
    assert (error.code, error.details["until"], error.details["secondary"]) == (
        "FORGE_RATE_LIMITED",
        "2027-01-15T08:15:00+00:00",
        False,
    )


async def test_c73_a_secondary_limit_says_until_when(there: Hosted) -> None:
    there.hub.next("GET", ".", Told(403, BUSY, {"Retry-After": "60"}))
    error = await refusal(there)
    assert (error.code, error.details["seconds"], error.details["secondary"]) == ("FORGE_RATE_LIMITED", 60, True)


async def test_too_many_requests_say_until_when(there: Hosted) -> None:
    there.hub.next("GET", ".", Told(429, {"message": "Retry later"}, {"RateLimit-Reset": str(int(NOW) + 30)}))
    error = await refusal(there)
    assert (error.code, error.details["seconds"]) == ("FORGE_RATE_LIMITED", 30)


async def test_a_short_wait_is_waited(there: Hosted) -> None:
    there.hub.next("GET", ".", Told(429, {"message": "Retry later"}, {"Retry-After": "3"}))
    assert await there.forge.find("x") is None
    assert there.waited == [3.0]


async def test_c73_a_token_that_expires_before_the_change_is_opened_costs_no_work(
    there: Hosted, pushed: ChangeDraft
) -> None:
    there.hub.next("POST", "(pulls|merge_requests)$", there.hub.refused(401, "Bad credentials"))
    with pytest.raises(Unavailable) as caught:
        await there.forge.put(pushed)
    assert caught.value.code == "FORGE_AUTH"
    change = await there.forge.put(pushed)
    assert (change.head, len(there.hub.changes)) == (pushed.head, 1)


async def test_a_service_that_fails_for_a_moment_is_asked_again(there: Hosted) -> None:
    there.hub.next("GET", ".", Told(502), Told(503))
    assert await there.forge.find("x") is None
    assert there.waited == [0.5, 1.0]


async def test_a_service_that_fails_on_is_named(there: Hosted) -> None:
    there.hub.next("GET", ".", *[Told(503)] * 9)
    error = await refusal(there)
    assert (error.code, there.waited) == ("FORGE_UNAVAILABLE", [0.5, 1.0])


async def test_opening_a_change_is_never_repeated_blindly(there: Hosted, pushed: ChangeDraft) -> None:
    """The service did it, and its answer was lost."""
    hub, real = there.hub, there.hub.open

    def lost(*args: str, base: str, title: str, body: str, draft: bool) -> None:
        real(*args, base=base, title=title, body=body, draft=draft)
        raise ConnectionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "open", lost)
        patch.setattr(hub.server, "handle_error", lambda *_: None)
        with pytest.raises(Unavailable) as caught:
            await there.forge.put(pushed)
    change = await there.forge.put(pushed)
    assert (caught.value.code, change.ref.number, len(hub.changes)) == ("FORGE_UNAVAILABLE", 1, 1)


async def test_a_service_that_is_not_there_is_named(there: Hosted) -> None:
    there.hub.stop()
    error = await refusal(there)
    assert (error.code, there.waited) == ("FORGE_UNAVAILABLE", [0.5, 1.0])


async def test_a_renamed_repository_is_followed_and_said(
    there: Hosted, pushed: ChangeDraft, git: Git, caplog: pytest.LogCaptureFixture
) -> None:
    old = "team%2Fold" if there.forge.name == "gitlab" else "team/old"
    there.hub.renamed = {old: old.replace("old", "sample")}
    git(there.checkout, "remote", "set-url", "origin", f"{there.hub.url}/team/old.git")
    change = await there.forge.put(pushed)
    assert (change.ref.number, "moved while" in caplog.text) == (1, True)
    health = await there.forge.probe()
    assert (health.ok, "git remote set-url" in health.message) == (True, True)


class Elsewhere(BaseHTTPRequestHandler):
    """Keeps what it is told."""

    def do_GET(self) -> None:
        self.server.seen.append(dict(self.headers))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()


async def test_a_token_does_not_follow_a_redirect_to_another_host(there: Hosted) -> None:
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as other:
        other.seen = []  # type: ignore[attr-defined]
        Thread(target=other.serve_forever, daemon=True).start()
        there.hub.next("GET", ".", Told(301, None, {"Location": f"http://127.0.0.1:{other.server_address[1]}/x"}))
        error = await refusal(there)
        other.shutdown()
        assert (error.code, other.seen) == ("FORGE_MOVED", [])  # type: ignore[attr-defined]


async def test_a_redirect_in_a_circle_ends(there: Hosted) -> None:
    there.hub.next("GET", ".", *[Told(302, None, {"Location": "?state=all"})] * 20)
    assert (await refusal(there)).code == "FORGE_UNAVAILABLE"


async def test_an_answer_that_is_no_json_is_no_crash(there: Hosted) -> None:
    error_page = Told(418, "<html>proxy</html>")
    there.hub.next("GET", ".", error_page)
    assert (await refusal(there)).code == "FORGE_REFUSED"


async def test_the_token_is_in_no_message_and_no_log(
    there: Hosted, pushed: ChangeDraft, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    there.hub.next("GET", ".", Told(403, {"message": f"no, {TOKEN}"}))
    error = await refusal(there)
    change = await there.forge.put(pushed)
    await there.forge.merge(change.ref, expected_head=pushed.head)
    health = await there.forge.probe()
    said = redact.ours().text(f"{error.envelope()}")
    assert [TOKEN in text for text in (said, str(health), repr(there.forge), caplog.text)] == [False] * 4


async def test_no_token_is_said_before_anything_is_asked(there: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable(there.hub))
    error = await refusal(there)
    assert (error.code, error.details["variable"], there.hub.asked) == ("FORGE_NO_TOKEN", variable(there.hub), [])


async def test_a_folder_as_origin_is_no_repository_of_a_service(there: Hosted, git: Git, tmp_path: Path) -> None:
    git(there.checkout, "remote", "set-url", "origin", str(tmp_path / "origin.git"))
    assert (await refusal(there)).code == "FORGE_LOCAL"
