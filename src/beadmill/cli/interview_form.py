"""The interview at a terminal: question by question, saved after each answer, until it is over. Ctrl-C detaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from beadmill.cli._answering import HELP, Answer, Command, Wrong, drafted, keys, spoken, understood, with_answer
from beadmill.errors import BeadmillError

ASKING: Final = (  # statuses in which a batch is still to come
    "scanning_relevant_files",
    "council_deliberating",
    "council_voting_interview",
    "compiling_interview",
    "waiting_interview_answers",
    "verifying_interview_coverage",
)
NEEDS_A_PERSON: Final = 5
STALE: Final = 3  # times another window may save first before it is told


class Api(Protocol):
    def call(
        self,
        operation: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        etag: str = "",
        **path: str | int,
    ) -> Any: ...


class Terminal(Protocol):
    def read(self, prompt: str) -> str:
        """One line. Raises KeyboardInterrupt or EOFError when the person leaves."""
        ...

    def say(self, text: str = "", style: str = "") -> None: ...

    def write(self, text: str) -> str:
        """In the person's editor; "" when there is none."""
        ...

    def until(self, words: str, ready: Callable[[], Any]) -> Any:
        """The first thing ``ready`` gives; looks again whenever something happened."""
        ...


class Left(Exception):
    """The person leaves."""


def converse(client: Api, key: str, desk: Terminal) -> int:
    """Batch after batch. 0 = the interview is over or left for later, 5 = something else waits for a person."""
    sitting: Sitting | None = None
    try:
        while True:
            found = desk.until("The interviewer is at work. Ctrl-C detaches …", lambda: _next(client, key))
            if found["gate"] is None:
                return _over(desk, key, found)
            sitting = Sitting.opened(client, key, desk, found)
            sitting.run()
            sitting = None
    except (KeyboardInterrupt, EOFError, Left):
        desk.say()
        desk.say(_kept(sitting))
        desk.say(f"Go on: beadmill interview answer {key}")
        return 0


def _next(client: Api, key: str) -> Any:
    """The batch that waits; or, without one, the ticket, once none can come."""
    view = client.call("interviews.show", key=key)
    if view["gate"] is not None:
        return view
    ticket = client.call("tickets.show", key=key)
    gates = ticket["current"]["gates"] if ticket["current"] else []
    comes = ticket["status"] in ASKING and ticket["hold"] == "none"
    return None if comes and not gates else {**view, "over": ticket, "gates": gates}


def _over(desk: Terminal, key: str, found: Any) -> int:
    ticket = found["over"]
    if ticket["hold"] != "none":
        desk.say(f"{key} is held: beadmill run resume {ticket['run']}")
        return NEEDS_A_PERSON
    if ticket["state"] == "draft":
        desk.say(f"{key} has not started: beadmill ticket start {key}")
        return NEEDS_A_PERSON
    desk.say(f"No question of {key} waits. Answered so far: {found['answered']}.")
    for gate in found["gates"]:
        desk.say(f"Waits for you: {gate['title']}", "bold")
        desk.say(f"  {gate['answer_with']}")
    return NEEDS_A_PERSON if any(g["kind"] in ("blocked", "budget") for g in found["gates"]) else 0


def _kept(sitting: Sitting | None) -> str:
    count = len(list(sitting.unsent())) if sitting else 0
    if not count:
        return "Detached. Nothing is unsent."
    return f"Detached. Your {count} unsent answer{'s are' if count > 1 else ' is'} kept."


@dataclass(slots=True)
class Sitting:
    """One batch. ``body`` is the draft, which the browser's form shares."""

    client: Api
    key: str
    desk: Terminal
    gate: Any
    body: dict[str, Any] = field(default_factory=dict)
    revision: int = 0

    @classmethod
    def opened(cls, client: Api, key: str, desk: Terminal, view: Any) -> Sitting:
        sitting = cls(client, key, desk, view["gate"])
        sitting._read_draft()
        return sitting

    @property
    def questions(self) -> list[Any]:
        return list(self.gate["detail"]["questions"])

    @property
    def earlier(self) -> dict[str, Any]:
        return {q["id"]: q for q in self.gate["detail"].get("earlier") or ()}

    def unsent(self) -> Iterator[tuple[str, Any, Answer]]:
        """(prefix, question, answer) of all that the draft holds."""
        for prefix, questions in (("q", self.questions), ("e", list(self.earlier.values()))):
            for question in questions:
                answer = drafted(self.body, prefix, question)
                if answer is not None and (prefix == "q" or answer != _before(question)):
                    yield prefix, question, answer

    def run(self) -> None:
        """Until it is sent. Raises Left."""
        self._head()
        at = 0
        while at < len(self.questions):
            at = max(0, at + self._ask("q", self.questions[at], f"{at + 1} of {len(self.questions)}"))
            if self.gate is None:
                return
        self._review()

    def _head(self) -> None:
        detail, desk = self.gate["detail"], self.desk
        progress = detail.get("progress")
        about = f", question {progress['current']} of about {progress['total']}" if progress else ""
        desk.say()
        desk.say(f"{self.key}: batch {detail['batch']}{about}", "bold")
        if detail.get("commentary"):
            desk.say(detail["commentary"], "italic")
        count = len(list(self.unsent()))
        if count:
            desk.say(f"Your {count} unsent answer{'s are' if count > 1 else ' is'} filled in.")
        desk.say("? says what you can type.", "dim")

    # --- one question ---------------------------------------------------------------------------------------------
    def _ask(self, prefix: str, question: Any, place: str) -> int:
        """How many questions to go on: 1, or -1 for back."""
        self._show(question, place)
        now = drafted(self.body, prefix, question) or (_before(question) if prefix == "e" else None)
        if now is not None:
            self.desk.say(f"Your answer: {spoken(question, now)}  (Enter keeps it)", "cyan")
        while True:
            said = understood(question, self.desk.read("> "))
            if said is None and now is None:
                self.desk.say("Nothing was typed. :s skips the question, ? lists what you can type.")
            elif said is None:
                return 1
            elif isinstance(said, Wrong):
                self.desk.say(said.message, "yellow")
            elif isinstance(said, Command):
                moved = self._do(said, prefix, question, now)
                if moved is not None:
                    return moved
            else:
                self._take(prefix, question, said)
                return 1

    def _show(self, question: Any, place: str) -> None:
        marks = [question["id"], question["phase"]]
        marks += [question["priority"]] if question["priority"] in ("critical", "high") else []
        marks += ["follow-up"] if question["source"] in ("prompt_follow_up", "coverage_follow_up") else []
        self.desk.say()
        self.desk.say(" · ".join([place, *marks]), "dim")
        self.desk.say(question["question"], "bold")
        if question.get("rationale"):
            self.desk.say(f"Why: {question['rationale']}", "dim")
        options = question.get("options") or ()
        for number, (letter, option) in enumerate(zip(keys(options), options, strict=True), 1):
            self.desk.say(f"  {number} {letter}  {option['label']}")
        if question["answer_type"] == "multiple_choice":
            self.desk.say("Several may be chosen: 1,3", "dim")

    def _do(self, command: Command, prefix: str, question: Any, now: Answer | None) -> int | None:
        """None = ask the same question on."""
        match command.name:
            case "s":
                self._take(prefix, question, {"skipped": True, "skip_reason": command.rest})
                return 1
            case "b":
                return -1
            case "e":
                text = self.desk.write((now or {}).get("free_text") or "")
                if not text.strip():
                    return None
                chosen = (now or {}).get("selected_option_ids") or []
                options = {"selected_option_ids": chosen} if question.get("options") else {}
                self._take(prefix, question, {"free_text": text.strip(), **options})
                return 1
            case _:
                return self._aside(command, question)

    def _aside(self, command: Command, question: Any) -> int | None:
        if command.name == "q":
            raise Left
        if command.name == "all":
            return self._skip_all(command.rest)
        if command.name == "c":
            self._change(command.rest)
            self._show(question, "again")
        elif command.name == "l":
            self._list()
        else:
            self.desk.say(HELP)
        return None

    def _list(self) -> None:
        if not self.earlier:
            self.desk.say("This is the first batch: there is no earlier answer.")
        for name, question in self.earlier.items():
            changed = drafted(self.body, "e", question)
            self.desk.say(f"{name}  {question['question']}", "bold")
            self.desk.say(f"     {spoken(question, changed or _before(question))}{'  (changed)' if changed else ''}")

    def _change(self, name: str) -> None:
        wanted = self.earlier.get(name.upper())
        if wanted is None:
            self.desk.say(f"{name or 'Nothing'} is no earlier answer. :l lists them.", "yellow")
        else:
            self._ask("e", wanted, "an earlier answer")

    # --- the end of the batch -------------------------------------------------------------------------------------
    def _review(self) -> None:
        while self.gate is not None:
            self.desk.say()
            self.desk.say("Your answers", "bold")
            said = list(self.unsent())
            for number, (prefix, question, answer) in enumerate(said, 1):
                mark = "changed  " if prefix == "e" else ""
                self.desk.say(f"  {number}  {question['id']}  {mark}{spoken(question, answer)}")
            line = self.desk.read("Enter sends them, a number changes one: ").strip()
            if not line:
                self._send("interviews.answer")
            elif line.isdecimal() and 1 <= int(line) <= len(said):
                prefix, question, _ = said[int(line) - 1]
                self._ask(prefix, question, "again")
            elif isinstance(command := understood({}, line), Command):
                self._aside(command, self.questions[-1])
            else:
                self.desk.say("Type Enter, one of the numbers, or a command such as :q.", "yellow")

    def _skip_all(self, reason: str) -> int | None:
        self.desk.say(
            "What you have answered stays. Everything else is left to the council, which says what it assumes."
        )
        if self.desk.read("Skip all that is left? [y/N] ").strip().lower() not in ("y", "yes"):
            return None
        self._send("interviews.skip_all", reason=reason)
        return 1

    def _send(self, operation: str, **more: Any) -> None:
        """Refused because somebody was first: said, and the next batch comes. Anything else is the person's to mend."""
        said = list(self.unsent())
        body = {
            name: {q["id"]: a for p, q, a in said if p == prefix} for name, prefix in (("answers", "q"), ("edits", "e"))
        }
        try:
            self.client.call(operation, key=self.key, etag=self.gate["etag"], body={**body, **more})
        except BeadmillError as refused:
            if refused.code not in ("NO_QUESTIONS", "ALREADY_ANSWERED", "GATE_STALE", "GATE_WITHDRAWN"):
                self.desk.say(f"{refused.message} {refused.next}".strip(), "yellow")
                return
            self.desk.say(f"Not sent: {refused.message}.", "yellow")
        else:
            self.desk.say("Sent.", "green")
        self.gate = None

    # --- the draft ------------------------------------------------------------------------------------------------
    def _read_draft(self) -> None:
        draft = self.client.call("drafts.show", target=self.gate["id"])
        self.body = draft["body"] if isinstance(draft["body"], dict) else {}
        self.revision = draft["revision"]

    def _take(self, prefix: str, question: Any, answer: Answer) -> None:
        """Saved at once; what another window saved meanwhile is taken over, but for this question."""
        for _ in range(STALE):
            self.body = with_answer(self.body, prefix, question, answer)
            try:
                wish = {"body": self.body, "revision": self.revision}
                self.revision = self.client.call("drafts.save", target=self.gate["id"], body=wish)["revision"]
            except BeadmillError as refused:
                if refused.code != "DRAFT_STALE":
                    self.desk.say(f"Not saved: {refused.message}. It is only here until you send it.", "yellow")
                    return
                self._read_draft()
                self.desk.say("Another window has saved meanwhile; its other answers are taken over.", "yellow")
            else:
                return


def _before(question: Any) -> Answer:
    """The earlier answer, in the form of a draft's."""
    old = question["answer"]
    if old["skipped"]:
        return {"skipped": True, "skip_reason": old["skip_reason"] or ""}
    options = {"selected_option_ids": list(old["selected_option_ids"])} if question.get("options") else {}
    return {"free_text": old["free_text"], **options}
