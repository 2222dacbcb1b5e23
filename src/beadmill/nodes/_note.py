"""What a failed try leaves for the next session: why it failed as Beadmill saw it, then what its own session says."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from beadmill.briefs import Briefs, PartText
from beadmill.domain.ended import SessionRef
from beadmill.domain.values import Access
from beadmill.engine.port import Visit
from beadmill.errors import TurnFailed
from beadmill.nodes._coding import Talk
from beadmill.nodes._seating import implementer
from beadmill.processes.spec import AgentTask

NOTE_TIME = timedelta(seconds=60)
MAX_NOTE = 4_000  # characters


class Noter:
    def __init__(self, briefs: Briefs) -> None:
        self.briefs = briefs

    async def note(self, v: Visit, subject: str, talk: Talk, reason: str, *, cwd: str) -> str:
        """The session is asked in its own conversation; one that cannot answer leaves the reason alone."""
        said = ""
        if talk.session is not None and talk.session.conversation:
            try:
                reply = await v.agent("note", lambda: self._task(v, subject, talk.session, reason, cwd=cwd))
                said = reply.text.strip()
            except TurnFailed:
                said = ""
        return "\n\n".join(text for text in (reason, said) if text)[:MAX_NOTE]

    def _task(self, v: Visit, subject: str, session: SessionRef | None, reason: str, *, cwd: str) -> AgentTask:
        parts = [PartText("error_context", reason)]
        briefs = self.briefs.within(v.settings.context_tokens, v.prompts)
        return AgentTask(
            seat=implementer(v.settings),
            brief=briefs.write("iteration_note", parts, ticket=v.work.key, subject=subject),
            access=Access.NONE,
            cwd=Path(cwd),
            budget=NOTE_TIME,
            idle=NOTE_TIME,
            resume=session,
        )
