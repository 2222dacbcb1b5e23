"""Prompts: the templates that sessions are briefed with, and what a run's sessions were given."""

from __future__ import annotations

from beadmill.operations.views.base import View


class FaultView(View):
    """``line`` counts from 1; 0 = not one line's."""

    line: int
    reason: str


class PromptLine(View):
    """``name`` begins with "_" for a snippet that prompts share. ``built_in_changed``: the built-in text is another one
    than the edit was made from; None when nobody noted which that was. ``needs`` of ``parts`` are never dropped."""

    name: str
    stage: str
    purpose: str
    modified: bool
    fault: FaultView | None
    warnings: tuple[str, ...]
    built_in_changed: bool | None
    sha256: str
    parts: tuple[str, ...]
    needs: tuple[str, ...]


class PromptsView(View):
    """``strangers`` are files in the folder that are no prompt: a misspelt name changes nothing."""

    folder: str
    prompts: tuple[PromptLine, ...]
    strangers: tuple[str, ...]


class PromptView(PromptLine):
    """``text`` is what counts for runs that start now, if it has no fault; ``sha256`` is its hash and the ETag of a
    save. ``edited`` None = no file, or one that is no text. ``news``: what the built-in text changed since the edit."""

    text: str
    built_in: str
    edited: str | None
    diff: str
    news: str
    includes: tuple[str, ...]
    used_by: tuple[str, ...]
    values: tuple[str, ...]


class RevertedView(PromptView):
    """``kept`` is where the edit lies now; "" when there was none."""

    kept: str


class PartLine(View):
    """One part of a brief. ``tokens`` is the estimate ceil(bytes / 4); a dropped part was over the budget."""

    name: str
    sha256: str
    tokens: int
    version: int = 0
    dropped: bool = False
    note: str = ""


class PreviewView(View):
    """``material`` "sample", or the session whose material it is."""

    template: str
    text: str
    tokens: int
    parts: tuple[PartLine, ...]
    material: str
    warnings: tuple[str, ...]


# --- what a run was given -----------------------------------------------------------------------------------------
class Given(View):
    """Tokens: ``estimated`` of what the briefs held, ``dropped`` of what was left out, ``billed`` as the provider counts
    its input, ``cached`` of it at the cached price; None = no turn of it reported any."""

    estimated: int = 0
    dropped: int = 0
    billed: int | None = None
    cached: int | None = None


class SessionContext(View):
    token: str
    template: str
    subject: str
    seat: str
    ended: bool
    parts: tuple[PartLine, ...]
    given: Given


class StageContext(View):
    """The sessions of one visit, oldest first."""

    visit: str
    node: str
    n: int
    sessions: tuple[SessionContext, ...]
    given: Given


class ContextView(View):
    run: str
    ticket: str
    stages: tuple[StageContext, ...]
    given: Given
