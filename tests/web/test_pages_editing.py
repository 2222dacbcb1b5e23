"""Documents edited on the screen, as a form and as text: nothing typed is lost, nothing of others is overwritten unseen."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import httpx2
import pytest
from house_for_tests import OWNER, Starter, approved, until
from pages_for_tests import fields, page, text

from beadmill.artifacts.text import from_value
from beadmill.operations import artifacts, drafts, views
from beadmill.operations.ports import Ports
from beadmill.store import blobs

TYPED = {"product.problem_statement": "Typed"}


@pytest.fixture
async def shown(ports: Ports, started: Starter) -> views.ArtifactView:
    """The PRD that waits at an open gate."""
    ticket = await started()
    rows = await artifacts.listing(ports, ticket=ticket.key, actor=OWNER)
    return await artifacts.show(ports, rows.items[0].row, actor=OWNER)


async def put(ports: Ports, run: str, visit: str, kind: str, value: Any) -> int:
    """A document of that run that no gate shows. Its row."""
    doc = from_value(kind, value)
    made = await ports.store.write(lambda tx: blobs.put_document(tx, doc, run=run, visit=visit, author="seat:alpha"))
    return made.row


async def form_of(client: httpx2.AsyncClient, row: int, mode: str) -> tuple[str, dict[str, Any]]:
    """The address of the editor and every field of it as a browser would send it."""
    action = f"/artifacts/{row}/form" if mode == "form" else f"/artifacts/{row}"
    shown = await page(client, f"/artifacts/{row}?edit={mode}")
    return action, fields(shown, action) | (written(shown) if mode == "form" else {})


def written(shown: str) -> dict[str, Any]:
    """The named inputs and texts of a form."""
    out: dict[str, Any] = {}
    for name, value in re.findall(r'<input (?:type="hidden" )?name="([^"]+)"[^>]*? value="([^"]*)"', shown):
        out.setdefault(name, []).append(unescape(value))
    for name, value in re.findall(r'(?s)<textarea[^>]*? name="([^"]+)"[^>]*>\n?(.*?)</textarea>', shown):
        out[name] = [unescape(value)]
    for name, value in re.findall(r'<select name="([^"]+)".*?<option value="([^"]+)" selected', shown):
        out[name] = [unescape(value)]
    return out


# --- as a form ----------------------------------------------------------------------------------------------------
async def test_a_form_that_is_sent_as_it_came_is_the_same_document(
    signed_in: httpx2.AsyncClient, shown: views.ArtifactView
) -> None:
    action, typed = await form_of(signed_in, shown.row, "form")
    answer = await signed_in.post(action, data=typed | {"act": "save"})
    assert (answer.status_code, answer.headers.get("location")) == (303, "/tickets/API-1")
    assert "v2" not in text(await page(signed_in, f"/artifacts/{shown.row}"))


async def test_what_a_form_changes_is_a_new_version_marked_as_a_persons(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView
) -> None:
    action, typed = await form_of(signed_in, shown.row, "form")
    await signed_in.post(action, data=typed | TYPED | {"act": "save"})
    new = (await artifacts.listing(ports, run=shown.run, actor=OWNER)).items[-1]
    document: Any = (await artifacts.show(ports, new.row, actor=OWNER)).document
    before: Any = shown.document
    assert document == {**before, "product": {**before["product"], "problem_statement": "Typed"}}
    assert "v2 owner edited by a person" in text(await page(signed_in, f"/artifacts/{new.row}"))


async def test_a_button_adds_an_item_and_keeps_what_was_typed(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView
) -> None:
    action, typed = await form_of(signed_in, shown.row, "form")
    answer = await signed_in.post(action, data=typed | TYPED | {"act": "add:epics.0.user_stories"})
    assert (answer.status_code, 'value="US-1-2"' in answer.text, ">\nTyped</textarea>" in answer.text) == (
        200,
        True,
        True,
    )
    after = fields(answer.text, action) | written(answer.text)
    after["epics.0.user_stories.n1.title"] = "As a user I subtract"
    await signed_in.post(action, data=after | {"act": "save"})
    new = (await artifacts.listing(ports, run=shown.run, actor=OWNER)).items[-1]
    document: Any = (await artifacts.show(ports, new.row, actor=OWNER)).document
    assert [s["id"] for s in document["epics"][0]["user_stories"]] == ["US-1-1", "US-1-2"]


async def test_a_problem_of_a_form_is_told_at_its_field_and_in_the_summary(
    signed_in: httpx2.AsyncClient, shown: views.ArtifactView
) -> None:
    action, typed = await form_of(signed_in, shown.row, "form")
    added = (
        await signed_in.post(action, data=typed | {"act": "add:epics.0.user_stories.0.verification.required_commands"})
    ).text
    name = "epics.0.user_stories.0.verification.required_commands.n1.line"
    filled = fields(added, action) | written(added) | {name: "echo 'open"}
    answer = await signed_in.post(action, data=filled | {"act": "save"})
    assert (answer.status_code, f'href="#f-{name}"' in answer.text) == (422, True)
    assert f'id="why-{name}">no closing quotation' in answer.text


@pytest.mark.parametrize("kind", ["beads", "interview"])
async def test_every_kind_of_form_can_be_sent_as_it_came(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView, kind: str
) -> None:
    bead = {"title": "T", "acceptanceCriteria": ["a"], "tests": ["t"], "targetFiles": ["f"], "testCommands": ["make x"]}
    beads = [bead | {"id": "one"}, bead | {"id": "two", "dependencies": {"blocked_by": ["one"]}}]
    asked = {"id": "Q1", "phase": "Foundation", "prompt": "Why?", "answer": {"free_text": "So", "answered_by": "user"}}
    value = {"beads": beads} if kind == "beads" else {"ticket_id": "API-1", "questions": [asked]}
    row = await put(ports, shown.run, shown.visit, kind, value)
    action, typed = await form_of(signed_in, row, "form")
    if kind == "beads":
        typed["beads.1.dependencies.blocked_by"] = ["0"]
    answer = await signed_in.post(action, data=typed | {"act": "save"})
    assert (answer.status_code, "NOT_AT_A_GATE" in answer.text) == (409, True)


# --- as text ------------------------------------------------------------------------------------------------------
async def test_every_damaged_line_has_its_reason_and_a_field_of_its_own(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView
) -> None:
    action, typed = await form_of(signed_in, shown.row, "text")
    damaged = shown.text.replace("product:", "colour: red\nsize: 3\nproduct:")
    answer = await signed_in.post(action, data=typed | {"text": damaged})
    repairs = fields(answer.text, action)
    assert (answer.status_code, "2 problems" in text(answer.text)) == (422, True)
    lines = {name: value for name, value in repairs.items() if name.startswith("was.")}
    assert sorted(lines.values()) == ["colour: red", "size: 3"]
    first, second = (name.removeprefix("was.") for name in lines)
    repaired = {f"line.{first}": "# one", f"line.{second}": "# two", "text": damaged}
    assert (await signed_in.post(action, data=repairs | repaired)).status_code == 303


async def test_beads_are_edited_as_lines_and_only_the_damaged_one_is_replaced(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView
) -> None:
    bead = {"title": "T", "acceptanceCriteria": ["a"], "tests": ["t"], "targetFiles": ["f"], "testCommandReason": "x"}
    row = await put(ports, shown.run, shown.visit, "beads", {"beads": [bead | {"id": "one"}]})
    action, typed = await form_of(signed_in, row, "text")
    odd = json.dumps(bead | {"id": "two"}, indent=None, separators=(" , ", " : "))
    answer = await signed_in.post(action, data=typed | {"text": f"{odd}\n{{damaged\n", "act": "check"})
    repaired = fields(answer.text, action) | {"text": f"{odd}\n{{damaged\n", "line.2": json.dumps(bead | {"id": "x"})}
    checked = await signed_in.post(action, data=repaired | {"act": "check"})
    kept = written(checked.text)["text"][0].split("\n")
    assert (kept[0], json.loads(kept[1])["id"], "It can be saved." in checked.text) == (odd, "x", True)


async def test_a_text_is_checked_while_it_is_typed(signed_in: httpx2.AsyncClient, shown: views.ArtifactView) -> None:
    answer = await signed_in.post(
        f"/artifacts/{shown.row}/check", data={"text": "<<<<<<< HEAD\n"}, headers={"HX-Request": "true"}
    )
    assert answer.text.startswith('<section id="wrongs"')
    assert "conflict marker of a merge" in answer.text


# --- somebody else saved ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["text", "form"])
async def test_a_stale_save_shows_who_saved_what_and_can_be_saved_over_it_after_looking(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView, mode: str
) -> None:
    action, typed = await form_of(signed_in, shown.row, mode)
    theirs = shown.text.replace("Adding", "Sums")
    await artifacts.edit(ports, shown.row, etag=shown.sha256, text=theirs, actor=OWNER)
    mine = (
        TYPED
        if mode == "form"
        else {"text": shown.text.replace("problem_statement: Do it", "problem_statement: Typed")}
    )
    stale = await signed_in.post(action, data=typed | mine | {"act": "save"})
    said = text(stale.text)
    assert (stale.status_code, "owner saved v2" in said, "Save over the newest version" in said) == (409, True, True)
    assert ("title: Sums" in said, "problem_statement: Typed" in said) == (True, True)
    again = fields(stale.text, action) | (written(stale.text) if mode == "form" else mine)
    assert (await signed_in.post(action, data=again | {"act": "save"})).status_code == 303
    new = (await artifacts.listing(ports, run=shown.run, actor=OWNER)).items[-1]
    last = await artifacts.show(ports, new.row, actor=OWNER)
    assert (last.version, "Typed" in last.text, "Sums" in last.text) == (3, True, False)


async def test_an_editor_of_an_old_version_says_so_before_anything_is_typed(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView
) -> None:
    await artifacts.edit(ports, shown.row, etag=shown.sha256, text=shown.text.replace("Adding", "Sums"), actor=OWNER)
    said = text(await page(signed_in, f"/artifacts/{shown.row}?edit=text"))
    assert ("owner saved v2" in said, "You edit v1" in said) == (True, True)


# --- unsaved words ------------------------------------------------------------------------------------------------
async def saved_draft(ports: Ports, row: int, words: str) -> int:
    body = {"mode": ["text"], "text": [words]}
    return (await drafts.save(ports, str(row), body, revision=0, actor=OWNER)).revision


async def test_unsaved_words_are_offered_and_never_put_into_the_editor_unasked(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView
) -> None:
    await saved_draft(ports, shown.row, "my own words")
    offered = await page(signed_in, f"/artifacts/{shown.row}?edit=text")
    assert ("You have unsaved words" in offered, "my own words" in offered, 'data-held="1"' in offered) == (
        True,
        False,
        True,
    )
    resumed = await page(signed_in, f"/artifacts/{shown.row}?edit=text&resume=1")
    assert (">\nmy own words</textarea>" in resumed, 'data-revision="1"' in resumed, "data-held" in resumed) == (
        True,
        True,
        False,
    )


async def test_unsaved_words_of_an_older_version_are_offered_at_the_newer_one_with_what_came_between(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView
) -> None:
    await saved_draft(ports, shown.row, shown.text.replace("Do it", "Done"))
    new = await artifacts.edit(
        ports, shown.row, etag=shown.sha256, text=shown.text.replace("Adding", "Sums"), actor=OWNER
    )
    said = text(await page(signed_in, f"/artifacts/{new.row}?edit=text"))
    assert "written as text on v1; since then there is v2" in said
    resumed = text(await page(signed_in, f"/artifacts/{shown.row}?edit=text&resume=1"))
    assert ("owner saved v2" in resumed, "problem_statement: Done" in resumed) == (True, True)


async def test_a_save_takes_its_draft_with_it_and_leaves_one_of_another_window(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView
) -> None:
    action, typed = await form_of(signed_in, shown.row, "text")
    revision = await saved_draft(ports, shown.row, "another window")
    for known, left in (("7", 1), (str(revision), 0)):
        answer = await signed_in.post(action, data=typed | {"text": shown.text, "revision": known})
        assert (answer.status_code, (await drafts.show(ports, str(shown.row), actor=OWNER)).revision) == (303, left)


async def test_words_that_were_only_offered_outlive_a_save_of_others(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView
) -> None:
    await saved_draft(ports, shown.row, "my own words")
    action, typed = await form_of(signed_in, shown.row, "text")
    wrong = await signed_in.post(action, data=typed | {"text": "x", "revision": "1"})
    assert ("You have unsaved words" in wrong.text, 'data-held="1"' in wrong.text) == (True, True)
    await signed_in.post(action, data=typed | {"text": shown.text.replace("Do it", "Done"), "revision": "1"})
    assert "You have unsaved words" in await page(signed_in, f"/artifacts/{shown.row}")


async def test_unsaved_words_are_discarded_by_a_button(
    signed_in: httpx2.AsyncClient, ports: Ports, shown: views.ArtifactView
) -> None:
    await saved_draft(ports, shown.row, "my own words")
    gone = await signed_in.post(f"/artifacts/{shown.row}/discard", data={"revision": "1"})
    assert (gone.status_code, "unsaved words" in await page(signed_in, f"/artifacts/{shown.row}")) == (303, False)


async def test_unsaved_words_never_come_to_another_ticket(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter, shown: views.ArtifactView
) -> None:
    await saved_draft(ports, shown.row, "my own words")
    other = await started(title="Do it")
    row = (await artifacts.listing(ports, ticket=other.key, actor=OWNER)).items[0].row
    assert "unsaved words" not in await page(signed_in, f"/artifacts/{row}?edit=text")


async def test_what_was_approved_is_edited_and_approved_by_one_button_that_says_what_begins_anew(
    signed_in: httpx2.AsyncClient, ports: Ports, started: Starter
) -> None:
    prd = await approved(ports, started, "write")
    seen = text(await page(signed_in, f"/artifacts/{prd.row}?edit=form"))
    assert ("everything made from it is made anew" in seen, "Save as a new version" in seen) == (True, False)
    action, typed = await form_of(signed_in, prd.row, "form")
    answer = await signed_in.post(action, data=typed | TYPED | {"act": "approve", "note": "typed anew"})
    assert answer.status_code == 303
    ticket = await until(ports, "API-1", lambda t: t.current.visits[-1].state == "parked")
    assert [(v.id.partition("/")[2], v.comment) for v in ticket.current.visits[1:]] == [
        ("check.1", ""),
        ("check.2", "typed anew"),
    ]
