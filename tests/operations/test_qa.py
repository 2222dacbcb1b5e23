"""Results of a checklist: saved by revision, files beside them, one submission."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from house_for_tests import OWNER, Starter, served
from qa_for_tests import FIRST, KEY, PNG, SECOND, AskingNode, pieces

from beadmill import app
from beadmill.domain.values import Actor
from beadmill.errors import Conflict, Invalid, Missing, NotFound, Refused, Stale, Unprocessable
from beadmill.operations import events, gates, qa, views
from beadmill.operations.ports import Ports
from beadmill.store import evidence

PASSED = {FIRST: {"outcome": "pass"}}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[app.House]:
    async with served(tmp_path / "home", AskingNode()) as built:
        yield built


@pytest.fixture
async def view(ports: Ports, started: Starter) -> views.QaView:
    await started()
    return await qa.show(ports, KEY, actor=OWNER)


async def sent(ports: Ports, view: views.QaView, **more: Any) -> views.QaView:
    assert view.gate
    wanted: dict[str, Any] = {"etag": view.gate.etag, "revision": view.revision, "actor": OWNER, **more}
    return await qa.submit(ports, KEY, **wanted)


def files(ports: Ports) -> list[str]:
    root = ports.settings.home / "evidence"
    return sorted(path.name for path in root.rglob("*") if path.is_file())


async def uploaded(ports: Ports, name: str = "seen.png", data: bytes = PNG) -> views.EvidenceView:
    return await qa.upload(ports, KEY, FIRST, name=name, chunks=pieces(data[:5], data[5:]), actor=OWNER)


# --- results --------------------------------------------------------------------------------------------------------
async def test_a_round_begins_with_nothing_checked(view: views.QaView) -> None:
    assert (view.version, view.revision, view.saved) == (1, 0, None)
    assert [one["outcome"] for one in view.results] == ["pending", "pending"]
    assert view.problems == (f"{FIRST}: it is required and not checked yet",)


async def test_results_are_saved_item_by_item_over_the_revision_that_was_read(ports: Ports, view: views.QaView) -> None:
    await qa.save(ports, KEY, PASSED, revision=0, actor=OWNER)
    now = await qa.save(ports, KEY, {SECOND: {"outcome": "fail", "observation": "no"}}, revision=1, actor=OWNER)
    assert (now.revision, [one["outcome"] for one in now.results]) == (2, ["pass", "fail"])
    assert now.problems == ()


async def test_a_second_window_is_told_what_the_first_saved(ports: Ports, view: views.QaView) -> None:
    await qa.save(ports, KEY, PASSED, revision=0, actor=OWNER)
    with pytest.raises(Stale) as refused:
        await qa.save(ports, KEY, {FIRST: {"outcome": "fail"}}, revision=0, actor=OWNER)
    assert (refused.value.code, refused.value.details["revision"]) == ("DRAFT_STALE", 1)
    assert refused.value.details["results"][0]["outcome"] == "pass"


WRONG = [
    ({"qa-v1-009": {"outcome": "pass"}}, "QA_ITEM"),
    ({FIRST: {"outcome": "maybe"}}, "QA_RESULT"),
    ({FIRST: {"outcome": "pass", "links": [{"url": "javascript:alert(1)"}]}}, "QA_LINK"),
    ({FIRST: {"outcome": "pass", "links": [{"url": "file:///etc/passwd"}]}}, "QA_LINK"),
    ({FIRST: {"outcome": "improvement", "improvement": {"title": "x", "priority": 9}}}, "QA_RESULT"),
]


@pytest.mark.parametrize(("results", "code"), WRONG, ids=[f"{code} {n}" for n, (_, code) in enumerate(WRONG)])
async def test_a_result_that_cannot_be_is_refused(ports: Ports, view: views.QaView, results: Any, code: str) -> None:
    with pytest.raises(Invalid) as refused:
        await qa.save(ports, KEY, results, revision=0, actor=OWNER)
    assert refused.value.code == code


async def test_results_with_something_left_to_do_are_not_submitted(ports: Ports, view: views.QaView) -> None:
    left = {FIRST: {"outcome": "fail"}, SECOND: {"outcome": "pass", "group": "a"}}
    now = await qa.save(ports, KEY, left, revision=0, actor=OWNER)
    with pytest.raises(Unprocessable) as refused:
        await sent(ports, now)
    assert refused.value.details["problems"] == [
        f"{FIRST}: say what you saw instead", f"{SECOND}: only failed items are mended together",
    ]  # fmt: skip


async def test_a_submission_names_what_it_was_made_for(ports: Ports, view: views.QaView) -> None:
    now = await qa.save(ports, KEY, PASSED, revision=0, actor=OWNER)
    with pytest.raises(Missing):
        await sent(ports, now, etag=None)
    with pytest.raises(Stale):
        await sent(ports, now, etag="another")
    with pytest.raises(Stale, match="saved elsewhere"):
        await sent(ports, now, revision=0)
    assert (await qa.show(ports, KEY, actor=OWNER)).gate is not None


async def test_a_submission_that_is_sent_twice_is_one(ports: Ports, view: views.QaView) -> None:
    now = await qa.save(ports, KEY, PASSED, revision=0, actor=OWNER)
    await sent(ports, now, key="once")
    await sent(ports, now, key="once")
    with pytest.raises(Conflict):
        await sent(ports, now, key="twice")
    assert now.gate
    decision = (await gates.show(ports, now.gate.id, actor=OWNER)).decision
    assert decision
    assert (decision.choice, decision.payload["results"][0]["outcome"]) == ("submit", "pass")


async def test_a_skip_keeps_what_was_entered_and_its_reason(ports: Ports, view: views.QaView) -> None:
    now = await qa.save(ports, KEY, {FIRST: {"outcome": "fail"}}, revision=0, actor=OWNER)
    assert now.gate
    await qa.skip(ports, KEY, etag=now.gate.etag, revision=1, reason="Friday.", actor=OWNER)
    decision = (await gates.show(ports, now.gate.id, actor=OWNER)).decision
    assert decision
    assert (decision.choice, decision.note, decision.payload["results"][0]["outcome"]) == ("skip", "Friday.", "fail")


async def test_who_may_only_read_changes_nothing(ports: Ports, view: views.QaView) -> None:
    reader = Actor("user", "ada", "api", scopes=("read",))
    for act in (
        qa.save(ports, KEY, PASSED, revision=0, actor=reader),
        qa.submit(ports, KEY, etag="x", revision=0, actor=reader),
        qa.upload(ports, KEY, FIRST, name="a", chunks=pieces(b"a"), actor=reader),
        qa.remove(ports, KEY, "a", actor=reader),
    ):
        with pytest.raises(Refused):
            await act
    assert (await qa.show(ports, KEY, actor=reader)).revision == 0


# --- files ----------------------------------------------------------------------------------------------------------
async def test_a_file_is_kept_by_its_hash_and_given_back_as_it_was(ports: Ports, view: views.QaView) -> None:
    one = await uploaded(ports)
    assert (one.name, one.size, one.media, one.inline) == ("seen.png", len(PNG), "image/png", True)
    assert one.sha256 == hashlib.sha256(PNG).hexdigest()
    _, parts = await qa.evidence(ports, KEY, one.id, actor=OWNER)
    assert b"".join([part async for part in parts]) == PNG
    assert files(ports) == [one.sha256]


@pytest.mark.parametrize(("data", "inline"), [(b"<svg onload='x'/>", False), (b"GIF89a...", True), (b"", False)])
async def test_only_raster_images_are_shown_inline_whatever_their_name(
    ports: Ports, view: views.QaView, data: bytes, inline: bool
) -> None:
    assert (await uploaded(ports, "a.png", data)).inline is inline


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/b", "a\\b", ".."])
async def test_a_name_that_is_a_path_is_refused(ports: Ports, view: views.QaView, name: str) -> None:
    with pytest.raises(Invalid, match="is a path"):
        await uploaded(ports, name)
    assert files(ports) == []


@pytest.mark.parametrize(
    ("name", "kept"), [(".bashrc", "bashrc"), ("a\x00\nb.txt", "a b.txt"), ("中文.png", "中文.png")]
)
async def test_a_name_is_made_harmless(ports: Ports, view: views.QaView, name: str, kept: str) -> None:
    assert (await uploaded(ports, name)).name == kept


async def test_a_file_over_the_limit_leaves_nothing(
    ports: Ports, view: views.QaView, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = evidence.EvidenceFiles(ports.settings.home / "evidence", limit=10)
    monkeypatch.setattr(qa, "files_of", lambda _ports: small)
    assert (await uploaded(ports, data=b"0123456789")).size == 10
    with pytest.raises(evidence.FileTooLarge):
        await uploaded(ports, data=b"0123456789a")
    assert len(files(ports)) == len((await qa.show(ports, KEY, actor=OWNER)).evidence) == 1
    assert evidence.LIMIT == 250 * 1024**2


async def test_an_upload_that_breaks_off_leaves_nothing(ports: Ports, view: views.QaView) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await qa.upload(ports, KEY, FIRST, name="a", chunks=broken(), actor=OWNER)
    assert files(ports) == []


@pytest.mark.parametrize("place", ["evidence", "evidence/tmp", "evidence/{two}"])
async def test_a_link_in_the_way_is_not_followed(ports: Ports, view: views.QaView, tmp_path: Path, place: str) -> None:
    aside = tmp_path / "aside"
    aside.mkdir()
    link = ports.settings.home / place.format(two=hashlib.sha256(PNG).hexdigest()[:2])
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(aside)
    with pytest.raises(Refused, match="links are not followed"):
        await uploaded(ports)
    assert list(aside.iterdir()) == []


async def test_a_removed_file_is_gone_unless_another_has_the_same_bytes(ports: Ports, view: views.QaView) -> None:
    first, second = await uploaded(ports), await uploaded(ports, "again.png")
    assert [one.id for one in (await qa.remove(ports, KEY, first.id, actor=OWNER)).evidence] == [second.id]
    assert files(ports) == [first.sha256]
    await qa.remove(ports, KEY, second.id, actor=OWNER)
    assert files(ports) == []
    with pytest.raises(NotFound):
        await qa.remove(ports, KEY, second.id, actor=OWNER)


async def test_files_of_a_submitted_round_stay(ports: Ports, view: views.QaView) -> None:
    one = await uploaded(ports)
    await sent(ports, await qa.save(ports, KEY, PASSED, revision=0, actor=OWNER))
    for act in (qa.remove(ports, KEY, one.id, actor=OWNER), uploaded(ports, "late.png")):
        with pytest.raises(Conflict):
            await act
    assert files(ports) == [one.sha256]


async def test_what_was_added_and_removed_is_told(ports: Ports, view: views.QaView) -> None:
    since = await events.newest(ports, actor=OWNER)
    one = await uploaded(ports)
    await qa.remove(ports, KEY, one.id, actor=OWNER)
    told = (await events.since(ports, topics=["all"], seq=since, actor=OWNER)).events
    assert [event.kind for event in told] == ["qa.evidence_uploaded", "qa.evidence_removed"]
    assert told[0].data["sha256"] == one.sha256


async def test_half_uploads_of_a_dead_process_are_swept(ports: Ports, view: views.QaView) -> None:
    await uploaded(ports)
    (ports.settings.home / "evidence/tmp/half").write_bytes(b"x")
    await app.sweep(ports.store, ports.sessions, ports.settings.home)  # type: ignore[arg-type]
    assert files(ports) == [hashlib.sha256(PNG).hexdigest()]
