"""Gates on the screen: the inbox, one gate with all it shows, and its one answer. What a person typed is never lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from beadmill.domain.values import Actor
from beadmill.errors import BeadmillError, Conflict
from beadmill.operations import artifacts, drafts, gates, interviews, runs, views
from beadmill.operations.ports import Ports
from beadmill.web.pages.forms import Posted, posted
from beadmill.web.pages.screen import On, PageRoute, Screen, back

router = APIRouter(route_class=PageRoute, include_in_schema=False)
BARE = ("etag", "key", "back", "choice", "target", "revision")  # fields of a gate's form that nobody typed


@dataclass(frozen=True, slots=True)
class Given:
    """What a person had typed before: refused just now, or saved while they wrote. ``of`` is where it comes from."""

    fields: Posted = field(default_factory=lambda: Posted({}))
    of: str = ""
    revision: int = 0

    def get(self, name: str, otherwise: Any = "") -> str:
        return self.fields.get(name, str(otherwise or ""))

    def chosen(self, name: str, option: str, otherwise: Sequence[str] = ()) -> bool:
        return option in (self.fields.all(name) if self.of else otherwise)

    @property
    def typed(self) -> list[tuple[str, str]]:
        return [(n, ", ".join(v)) for n, v in self.fields.fields.items() if n not in BARE and any(v)]


@dataclass(frozen=True, slots=True)
class Shown:
    """A gate with the documents it shows and the nodes it may be sent back to."""

    gate: views.GateView
    documents: tuple[views.ArtifactView, ...]
    nodes: tuple[views.NodeView, ...]
    given: Given


async def shown(ports: Ports, gate: views.GateView, *, actor: Actor, given: Given | None = None) -> Shown:
    documents = [await artifacts.show(ports, one.row, actor=actor) for one in gate.shows]
    run = await runs.show(ports, gate.run, actor=actor)
    known = given or await _saved(ports, gate, actor)
    return Shown(
        gate, tuple(d for d in documents if d.kind != "interview_session"), _before(run.nodes, gate.node), known
    )


def _before(nodes: Sequence[views.NodeView], node: str) -> tuple[views.NodeView, ...]:
    """The nodes that have been visited: where a gate can send the run back to."""
    return tuple(n for n in nodes if n.visits and n.id != node) + tuple(n for n in nodes if n.id == node)


async def _saved(ports: Ports, gate: views.GateView, actor: Actor) -> Given:
    draft = await drafts.show(ports, gate.id, actor=actor)
    body = draft.body if isinstance(draft.body, dict) else {}
    fields = {n: tuple(map(str, v)) if isinstance(v, list) else (str(v),) for n, v in body.items()}
    return Given(Posted(fields), "draft" if draft.revision else "", draft.revision)


# --- reading ------------------------------------------------------------------------------------------------------
@router.get("/gates")
async def inbox(on: On, project: str = "") -> Response:
    found = await gates.listing(on.ports, actor=on.actor, project=project, limit=100)
    return await on.page("inbox.html", gates=found.items, more=found.next is not None)


@router.get("/gates/{gate:path}/notice")
async def notice(on: On, gate: str) -> Response:
    """Why the gate on the screen is not the one that stands any more."""
    view = await gates.show(on.ports, gate, actor=on.actor)
    return on.part("gate/notice.html", gate=view)


@router.get("/gates/{gate:path}")
async def one(on: On, gate: str) -> Response:
    view = await gates.show(on.ports, gate, actor=on.actor)
    return await _page(on, await shown(on.ports, view, actor=on.actor))


async def _page(on: Screen, it: Shown, *, error: BeadmillError | None = None) -> Response:
    ticket = it.gate.ticket
    return await on.page(
        "gate/page.html",
        status=error.status if error else 200,
        topics=f"ticket:{ticket},board" if ticket else "board",
        it=it,
        error=error,
    )


# --- answering ----------------------------------------------------------------------------------------------------
@router.post("/gates/{gate:path}/answer")
async def answer(on: On, gate: str) -> Response:
    form = await posted(on.request)
    view = await gates.show(on.ports, gate, actor=on.actor)
    try:
        await _answer(on, view, form)
    except BeadmillError as error:
        return await _refused(on, gate, form, error)
    return back(form.get("back"), f"/tickets/{view.ticket}" if view.ticket else "/gates")


async def _answer(on: Screen, view: views.GateView, form: Posted) -> None:
    etag, key, choice = form.get("etag") or None, form.get("key"), form.get("choice")
    if view.kind == "interview" and choice == "answer" and view.ticket and view.state == "open":
        answers, edits = answers_of(view, form, "q"), edits_of(view, form)
        await interviews.answer(on.ports, view.ticket, answers, edits=edits, etag=etag, actor=on.actor, key=key)
        return
    payload = payload_of(view, form, choice)
    await gates.answer(
        on.ports, view.id, choice, etag=etag, payload=payload, note=form.get("note"), actor=on.actor, key=key
    )


async def _refused(on: Screen, gate: str, form: Posted, error: BeadmillError) -> Response:
    """The page again with the reason, the gate as it stands now, and everything that was typed."""
    view = await gates.show(on.ports, gate, actor=on.actor)
    return await _page(on, await shown(on.ports, view, actor=on.actor, given=Given(form, "posted")), error=error)


@router.post("/gates/{gate:path}/send-back")
async def send_back(on: On, gate: str) -> Response:
    form = await posted(on.request)
    view = await gates.show(on.ports, gate, actor=on.actor)
    try:
        if view.state != "open":
            raise answered(view)
        await gates.send_back(
            on.ports,
            gate,
            form.get("target"),
            etag=form.get("etag") or None,
            comment=form.get("comment"),
            actor=on.actor,
            key=form.get("key"),
        )
    except BeadmillError as error:
        return await _refused(on, gate, form, error)
    return back(form.get("back"), f"/tickets/{view.ticket}" if view.ticket else "/gates")


def answered(view: views.GateView) -> Conflict:
    by = f": {view.decision.choice} by {view.decision.actor} at {view.decision.at[:16]}" if view.decision else ""
    return Conflict(
        f"This was already answered{by}", code="ALREADY_ANSWERED", kept="that answer stands, and your input"
    )


# --- payloads -----------------------------------------------------------------------------------------------------
def payload_of(view: views.GateView, form: Posted, choice: str) -> Any:
    """What the gate's form asks for, from the fields of the screen."""
    if view.kind == "interview":
        answers = {"answers": answers_of(view, form, "q"), "edits": edits_of(view, form)}
        return answers | {"reason": form.get("note")}
    if view.kind == "approve" and (said := decisions_of(view, form)):
        return {"decisions": said}
    if view.kind == "question" and choice == "answer":
        return {_text_field(view): form.get("text").strip() or form.get("option")}
    if view.kind == "budget":
        given = {name: form.get(f"budget.{name}").strip() for name in _properties(view)}
        return {name: float(text) for name, text in given.items() if text.replace(".", "", 1).isdecimal()}
    return None


def decisions_of(view: views.GateView, form: Posted) -> dict[str, str]:
    """What was written to the contradictions, by their own words; blank fields decide nothing."""
    detail = view.detail if isinstance(view.detail, dict) else {}
    said = {one["gap"]: form.get(f"decision.{n}") for n, one in enumerate(detail.get("unresolved", ()), 1)}
    return {gap: text for gap, text in said.items() if text.strip()}


def _properties(view: views.GateView) -> Mapping[str, Any]:
    found = view.form.get("properties", {}) if isinstance(view.form, dict) else {}
    return found if isinstance(found, dict) else {}


def _text_field(view: views.GateView) -> str:
    return next((n for n, p in _properties(view).items() if p.get("type") == "string"), "text")


def answers_of(view: views.GateView, form: Posted, prefix: str) -> dict[str, Any]:
    """Of each question of the batch: skipped with its reason, or what was chosen and written."""
    return {q["id"]: _answer_of(form, f"{prefix}.{q['id']}", q) for q in view.detail.get("questions", ())}


def edits_of(view: views.GateView, form: Posted) -> dict[str, Any]:
    """Of earlier questions, only those whose answer is another one now."""
    out: dict[str, Any] = {}
    for question in view.detail.get("earlier", ()):
        name, before = f"e.{question['id']}", question["answer"]
        if f"{name}.here" not in form.fields:
            continue
        now = _answer_of(form, name, question)
        same_text = now.get("free_text", "") == before["free_text"]
        if not (same_text and list(now.get("selected_option_ids", ())) == list(before["selected_option_ids"])):
            out[question["id"]] = now
    return out


def _answer_of(form: Posted, name: str, question: Mapping[str, Any]) -> dict[str, Any]:
    text, chosen = form.get(f"{name}.text").strip(), form.all(f"{name}.option")
    if form.get(f"{name}.skip") or not (text or chosen):
        return {"skipped": True, "skip_reason": form.get(f"{name}.reason").strip()}
    options = {"selected_option_ids": list(chosen)} if question.get("options") else {}
    return {"free_text": text, **options}
