"""What a person types at an interview question, as an answer; and the draft that the browser's form shares. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Body = dict[str, list[str]]  # field of the form → its values, as the browser saves it
Answer = dict[str, Any]  # free_text, selected_option_ids, skipped, skip_reason
LETTERS: Final = "abcdefghijklmno"
YES_NO: Final = (("y", "yes"), ("n", "no"))
HELP: Final = """\
  a number or letter   chooses that option; several with commas where several may be chosen
  1: some words        chooses it, with a note
  any other words      are your answer
  e                    write it in your editor (:e at a question with options)
  :s why               skip this question; the reason may be left out
  :b                   back to the question before
  :l                   your earlier answers
  :c Q01               change one of them
  :all why             skip everything that is left and end the interview
  :q                   leave; what you answered is kept"""


@dataclass(frozen=True, slots=True)
class Command:
    """``name``: s, b, e, l, c, all, q, help; ``rest`` is what stands behind it."""

    name: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Wrong:
    message: str


def understood(question: Mapping[str, Any], line: str) -> Answer | Command | Wrong | None:
    """None = nothing was typed."""
    text = line.strip()
    if not text:
        return None
    if text in ("?", ":?", ":h", ":help"):
        return Command("help")
    if text.startswith(":"):
        return _command(text[1:])
    options = question.get("options") or ()
    if not options:
        return Command("e") if text == "e" else {"free_text": text}
    head, colon, note = text.partition(":")
    chosen = _chosen(options, head)
    if chosen is None:
        return {"free_text": text, "selected_option_ids": []}
    if isinstance(chosen, Wrong):
        return chosen
    if question["answer_type"] == "single_choice" and len(chosen) > 1:
        return Wrong("Only one can be chosen here; what else there is to say goes behind a colon, as a note.")
    return {"free_text": note.strip() if colon else "", "selected_option_ids": chosen}


def _command(text: str) -> Command | Wrong:
    name, _, rest = text.strip().partition(" ")
    known = {"s", "b", "e", "l", "c", "all", "q"}
    return Command(name, rest.strip()) if name in known else Wrong(f"There is no command :{name}. ? lists them.")


def _chosen(options: Any, text: str) -> list[str] | Wrong | None:
    """Option ids in the order of the options; None when the words are no choice."""
    ids = [option["id"] for option in options]
    same = [o["id"] for o in options if text.strip().casefold() in (o["id"].casefold(), o["label"].casefold())]
    if same:
        return same[:1]
    found: set[str] = set()
    for token in re.split(r"[,\s]+", text.strip().lower()):
        if token.isdecimal() and token.isascii():
            if not 1 <= int(token) <= len(ids):
                return Wrong(f"There is no option {token}: there are {len(ids)}.")
            found.add(ids[int(token) - 1])
        elif token in keys(options):
            found.add(ids[keys(options).index(token)])
        else:
            return None
    return [one for one in ids if one in found]


def keys(options: Any) -> list[str]:
    """The letter of each option; y and n where the choice is yes or no."""
    yes_no = tuple(option["id"] for option in options) == ("yes", "no")
    return [letter for letter, _ in YES_NO] if yes_no else list(LETTERS[: len(options)])


def spoken(question: Mapping[str, Any], answer: Answer | None) -> str:
    """One answer as a line of a list."""
    if answer is None:
        return "not answered yet"
    if answer.get("skipped"):
        reason = answer.get("skip_reason") or ""
        return f"skipped: {reason}" if reason else "skipped"
    labels = {o["id"]: o["label"] for o in question.get("options") or ()}
    chosen = "; ".join(labels.get(one, one) for one in answer.get("selected_option_ids") or ())
    return " – ".join(part for part in (chosen, answer.get("free_text") or "") if part)


# --- the draft ----------------------------------------------------------------------------------------------------
def drafted(body: Mapping[str, Any], prefix: str, question: Mapping[str, Any]) -> Answer | None:
    """What the draft holds of a question; None when nothing was said."""
    name = f"{prefix}.{question['id']}"

    def values(field: str) -> list[str]:
        found = body.get(f"{name}.{field}")
        return [str(one) for one in found if one] if isinstance(found, list) else [str(found)] if found else []

    if values("skip"):
        return {"skipped": True, "skip_reason": "".join(values("reason"))}
    text, chosen = "\n".join(values("text")), values("option")
    if not (text or chosen):
        return None
    return {"free_text": text, **({"selected_option_ids": chosen} if question.get("options") else {})}


def with_answer(body: Mapping[str, Any], prefix: str, question: Mapping[str, Any], answer: Answer) -> Body:
    """The draft with this answer in place of an earlier one, in the fields that the browser's form has."""
    name = f"{prefix}.{question['id']}"
    kept = {k: v for k, v in body.items() if not k.startswith(f"{name}.")}
    return {**kept, **{f"{name}.{field}": values for field, values in _fields(prefix, answer)}}


def _fields(prefix: str, answer: Answer) -> Iterator[tuple[str, list[str]]]:
    if prefix == "e":
        yield "here", ["1"]
    if answer.get("skipped"):
        yield "skip", ["1"]
        yield "reason", [answer.get("skip_reason") or ""]
        return
    yield "text", [answer.get("free_text") or ""]
    if answer.get("selected_option_ids"):
        yield "option", list(answer["selected_option_ids"])
