"""Every operation and its REST route. The API serves this table, the CLI calls by it. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

PREFIX = "/api/v1"
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class Route:
    """``path`` below PREFIX in FastAPI's spelling; ``{name:path}`` takes ids that contain slashes."""

    method: Method
    path: str

    def url(self, **values: str | int) -> str:
        """The path with its names filled in and percent-encoded. Raises KeyError when one is missing."""
        out = self.path
        for name in [part.split("}")[0] for part in self.path.split("{")[1:]]:
            key = name.split(":")[0]
            safe = "/" if name.endswith(":path") else ""
            out = out.replace("{" + name + "}", quote(str(values[key]), safe=safe))
        return PREFIX + out


# Order matters where a ``:path`` id is followed by a word: the longer route stands first.
ROUTES: dict[str, Route] = {
    "projects.listing": Route("GET", "/projects"),
    "projects.add": Route("POST", "/projects"),
    "projects.show": Route("GET", "/projects/{short}"),
    "projects.change": Route("PATCH", "/projects/{short}"),
    "projects.remove": Route("DELETE", "/projects/{short}"),
    "councils.record": Route("GET", "/projects/{short}/council"),
    "tickets.listing": Route("GET", "/tickets"),
    "tickets.create": Route("POST", "/tickets"),
    "tickets.show": Route("GET", "/tickets/{key}"),
    "tickets.edit": Route("PATCH", "/tickets/{key}"),
    "tickets.start": Route("POST", "/tickets/{key}/start"),
    "tickets.cancel": Route("POST", "/tickets/{key}/cancel"),
    "undo.listing": Route("GET", "/tickets/{key}/undo"),
    "undo.show": Route("GET", "/tickets/{key}/undo/{n}"),
    "undo.restore": Route("POST", "/tickets/{key}/undo/{n}/restore"),
    "interviews.show": Route("GET", "/tickets/{key}/interview"),
    "interviews.answer": Route("POST", "/tickets/{key}/interview/answer"),
    "interviews.edit": Route("POST", "/tickets/{key}/interview/edit"),
    "interviews.skip": Route("POST", "/tickets/{key}/interview/skip"),
    "interviews.skip_all": Route("POST", "/tickets/{key}/interview/skip-all"),
    "qa.show": Route("GET", "/tickets/{key}/qa"),
    "qa.save": Route("PUT", "/tickets/{key}/qa"),
    "qa.submit": Route("POST", "/tickets/{key}/qa/submit"),
    "qa.skip": Route("POST", "/tickets/{key}/qa/skip"),
    "qa.upload": Route("POST", "/tickets/{key}/qa/items/{item}/evidence"),
    "qa.evidence": Route("GET", "/tickets/{key}/evidence/{file}"),
    "qa.remove": Route("DELETE", "/tickets/{key}/evidence/{file}"),
    "gates.listing": Route("GET", "/gates"),
    "gates.answer": Route("POST", "/gates/{gate:path}/answer"),
    "gates.hold": Route("POST", "/gates/{gate:path}/hold"),
    "gates.send_back": Route("POST", "/gates/{gate:path}/send-back"),
    "gates.show": Route("GET", "/gates/{gate:path}"),
    "drafts.show": Route("GET", "/drafts/{target:path}"),
    "drafts.save": Route("PUT", "/drafts/{target:path}"),
    "drafts.discard": Route("DELETE", "/drafts/{target:path}"),
    "runs.listing": Route("GET", "/runs"),
    "runs.show": Route("GET", "/runs/{run}"),
    "runs.pause": Route("POST", "/runs/{run}/pause"),
    "runs.resume": Route("POST", "/runs/{run}/resume"),
    "runs.retry": Route("POST", "/runs/{run}/retry"),
    "runs.rerun": Route("POST", "/runs/{run}/rerun"),
    "runs.cancel": Route("POST", "/runs/{run}/cancel"),
    "runs.context": Route("GET", "/runs/{run}/context"),
    "occurrences.listing": Route("GET", "/runs/{run}/errors"),
    "councils.show": Route("GET", "/runs/{run}/council/{node}"),
    "changes.diff": Route("GET", "/runs/{run}/diff"),
    "trail.listing": Route("GET", "/trail"),
    "artifacts.listing": Route("GET", "/artifacts"),
    "artifacts.show": Route("GET", "/artifacts/{row}"),
    "artifacts.raw": Route("GET", "/artifacts/{row}/raw"),
    "artifacts.diff": Route("GET", "/artifacts/{row}/diff"),
    "artifacts.check": Route("POST", "/artifacts/{row}/check"),
    "artifacts.edit": Route("PUT", "/artifacts/{row}"),
    "beads.listing": Route("GET", "/runs/{run}/beads"),
    "beads.replan": Route("POST", "/runs/{run}/beads"),
    "beads.show": Route("GET", "/runs/{run}/beads/{bead}"),
    "sessions.listing": Route("GET", "/sessions"),
    "sessions.log": Route("GET", "/sessions/{token:path}/log"),
    "sessions.show": Route("GET", "/sessions/{token:path}"),
    "events.since": Route("GET", "/events"),
    "agents.listing": Route("GET", "/agents"),
    "agents.install": Route("POST", "/agents/{name}/install"),
    "agents.progress": Route("GET", "/agents/{name}/install"),
    "agents.cancel": Route("DELETE", "/agents/{name}/install"),
    "agents.probe": Route("POST", "/agents/{name}/probe"),
    "agents.turn": Route("POST", "/agents/{name}/turn"),
    "sops.listing": Route("GET", "/sops"),
    "sops.check": Route("POST", "/sops/lint"),
    "sops.show": Route("GET", "/sops/{name}"),
    "prompts.listing": Route("GET", "/prompts"),
    "prompts.reset": Route("POST", "/prompts/reset"),
    "prompts.show": Route("GET", "/prompts/{name}"),
    "prompts.save": Route("PUT", "/prompts/{name}"),
    "prompts.preview": Route("POST", "/prompts/{name}/preview"),
    "prompts.revert": Route("POST", "/prompts/{name}/revert"),
    "status.show": Route("GET", "/status"),
    "clean.preview": Route("GET", "/clean"),
    "clean.apply": Route("POST", "/clean"),
    "logins.link": Route("POST", "/links"),
    "status.config": Route("GET", "/config"),
    "settings.show": Route("GET", "/settings"),
    "settings.change": Route("PATCH", "/settings"),
}
