"""GitLab's API as far as the adapter goes, held against gitlab_api.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

from tests.forges.fakes.gitlab_api import SPEC
from tests.forges.fakes.hub import AT, Asked, Change, Hub, Route, Told
from tests.forges.fakes.openapi import Spec

P = "/projects/([^/]+)"
MR = rf"{P}/merge_requests/(\d+)"
DRAFTS = ("draft:", "[draft]", "(draft)")


class GitLabHub(Hub):
    root = "/api/v4"
    said_token = "Bearer"
    merge_method = "merge"
    squash = "default_off"
    status = ""  # the detailed merge status that a rule gives
    level = 40
    may_merge = True

    def spec(self) -> Spec:
        return SPEC

    def routes(self) -> Iterator[Route]:
        yield "GET", "/user", lambda _: Told(200, user("robot"))
        yield "GET", P, self._project
        yield "GET", f"{P}/repository/branches/(.+)", self._branch
        yield "GET", f"{P}/repository/compare", self._compare
        yield "GET", rf"{P}/repository/commits/(\w+)/statuses", lambda asked, *_: self._paged(asked, self.statuses)
        yield "GET", f"{P}/merge_requests", self._list
        yield "POST", f"{P}/merge_requests", self._create
        yield "GET", MR, self._with(lambda _, c: Told(200, self._mr(c)))
        yield "PUT", MR, self._with(self._edit)
        yield "PUT", f"{MR}/merge", self._with(self._merge)
        yield "POST", rf"{P}/merge_trains/merge_requests/(\d+)", self._with(self._train)
        yield "GET", f"{MR}/approvals", self._with(self._approvals)
        yield "GET", f"{MR}/reviewers", self._with(lambda _, c: Told(200, [r for r in c.reviews if "state" in r]))
        yield "GET", f"{MR}/notes", self._with(lambda asked, c: self._paged(asked, c.notes))
        yield "POST", f"{MR}/notes", self._with(self._note)

    def _with(self, act: Callable[[Asked, Change], Told]) -> Callable[..., Told]:
        def found(asked: Asked, project: str, number: str) -> Told:
            change = self.change(number) if self._name(project) else None
            return act(asked, change) if change else self.refused(404, "404 Not found")

        return found

    def _name(self, project: str) -> str:
        """By path or by number."""
        names = list(self.repos)
        if project.isdigit():
            return names[int(project) - 1]
        return project if project in names else ""

    def _number(self, name: str) -> int:
        return list(self.repos).index(name) + 1

    def _project(self, _: Asked, project: str) -> Told:
        name = self._name(project)
        if not name:
            return self.refused(404, "404 Project Not Found")
        rights = {"project_access": {"access_level": self.level, "notification_level": 3}, "group_access": None}
        return Told(
            200,
            {
                "id": self._number(name),
                "path_with_namespace": name,
                "permissions": rights,
                "merge_method": self.merge_method,
                "squash_option": self.squash,
                "merge_trains_enabled": self.queue,
            },
        )

    def _branch(self, _: Asked, project: str, branch: str) -> Told:
        name = self._name(project)
        sha = self.tip(name, branch) if name else ""
        return Told(200, {"name": branch, "commit": {"id": sha}}) if sha else self.refused(404, "404 Branch Not Found")

    def _compare(self, asked: Asked, project: str) -> Told:
        ahead = self.ahead(asked.query["from"], self._name(project), asked.query["to"])
        if ahead is None:
            return self.refused(404, "404 Ref Not Found")
        return Told(200, {"commits": [{"id": str(n)} for n in range(ahead)]})

    def _list(self, asked: Asked, _project: str) -> Told:
        found = [self._mr(c) for c in reversed(self.changes) if c.branch == asked.query["source_branch"]]
        return self._paged(asked, found)

    def _create(self, asked: Asked, project: str) -> Told:
        body, home = asked.body, self._name(project)
        if home != self.project and body.get("target_project_id") != self._number(self.project):
            return Told(422, {"error": "the change would stay in the fork"})
        title, draft = _titled(body["title"])
        made = self.open(
            home, body["source_branch"], base=body["target_branch"], title=title, body=body["description"], draft=draft
        )
        if made is None:
            return self.refused(409, ["Another open merge request already exists for this source branch: !1"])
        return Told(201, self._mr(made))

    def _edit(self, asked: Asked, change: Change) -> Told:
        body = asked.body
        if body.get("state_event") == "reopen" and not self.tip(change.home, change.branch):
            return self.refused(422, "source branch does not exist")
        if "title" in body:
            change.title, change.draft = _titled(body["title"])
        change.body = body.get("description", change.body)
        change.base = body.get("target_branch", change.base)
        change.state = {"close": "closed", "reopen": "open", None: change.state}[body.get("state_event")]
        return Told(200, self._mr(change))

    def _merge(self, asked: Asked, change: Change) -> Told:
        if not self.may_merge:
            return self.refused(401, "401 Unauthorized")
        if asked.body["sha"] != change.head:
            return self.refused(409, "SHA does not match HEAD of source branch")
        if change.draft or change.state != "open" or self.blocked or not self.merges(change):
            return self.refused(405, self.blocked or "405 Method Not Allowed")
        self.merge(change, "squash" if asked.body["squash"] else self._way())
        return Told(200, self._mr(change))

    def _way(self) -> str:
        return "rebase" if self.merge_method == "ff" else "merge"

    def _train(self, asked: Asked, change: Change) -> Told:
        if asked.body["sha"] != change.head:
            return self.refused(409, "SHA does not match HEAD of source branch")
        change.queued = True
        return Told(201, [{"target_branch": change.base, "status": "idle"}])

    def _approvals(self, _: Asked, change: Change) -> Told:
        return Told(200, {"approved": True, "approved_by": [r for r in change.reviews if "state" not in r]})

    def _note(self, asked: Asked, change: Change) -> Told:
        change.notes.append(note(len(change.notes) + 1, "robot", asked.body["body"]))
        return Told(201, change.notes[-1])

    def refused(self, status: int, words: Any) -> Told:
        return Told(status, {"message": words})

    def _paged(self, asked: Asked, items: list[Any]) -> Told:
        page = int(asked.query.get("page", 1))
        more = str(page + 1) if len(items) > page * self.page else ""
        return Told(200, items[(page - 1) * self.page : page * self.page], {"X-Next-Page": more})

    def _mr(self, change: Change) -> dict[str, Any]:
        change = self.fresh(change)
        merges = self.merges(change) if change.state == "open" else None
        return {
            "id": 1000 + change.number,
            "iid": change.number,
            "project_id": self._number(self.project),
            "title": f"Draft: {change.title}" if change.draft else change.title,
            "description": change.body,
            "state": {"open": "opened"}.get(change.state, change.state),
            "created_at": AT,
            "updated_at": AT,
            "source_branch": change.branch,
            "target_branch": change.base,
            "source_project_id": self._number(change.home),
            "target_project_id": self._number(self.project),
            "draft": change.draft,
            "work_in_progress": change.draft,
            "merge_status": {True: "can_be_merged", False: "cannot_be_merged", None: "checking"}[merges],
            "detailed_merge_status": self._detail(change, merges=merges),
            "has_conflicts": merges is False,
            "merge_when_pipeline_succeeds": change.queued,
            "sha": change.head,
            "merge_commit_sha": change.merge_sha or None,
            "squash_commit_sha": None,
            "web_url": f"{self.url}/{self.project}/-/merge_requests/{change.number}",
            "squash": False,
        }

    def _detail(self, change: Change, *, merges: bool | None) -> str:
        if change.state != "open":
            return "not_open"
        if merges is None:
            return "checking"
        if change.draft:
            return "draft_status"
        return self.status or ("mergeable" if merges else "conflict")


def _titled(title: str) -> tuple[str, bool]:
    for prefix in DRAFTS:
        if title.lower().startswith(prefix):
            return title[len(prefix) :].strip(), True
    return title, False


def user(name: str) -> dict[str, Any]:
    return {"id": 1, "username": name, "name": unquote(name), "state": "active"}


def note(number: int, author: str, body: str, at: str = AT) -> dict[str, Any]:
    return {"id": number, "author": user(author), "created_at": at, "body": body, "system": False}
