"""GitLab, in the cloud and self-managed. A draft is a word before the title; a merge train is a queue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Literal
from urllib.parse import quote

from beadmill.errors import NotFound
from beadmill.forges import _faults
from beadmill.forges._http import Http
from beadmill.forges.contract import Change, ChangeDraft, ChangeRef, ChangeState, ChangeStatus, Check, Comment, Review
from beadmill.forges.hosted import HostedForge
from beadmill.forges.service import (
    Access,
    Ends,
    Exists,
    Pull,
    Service,
    base_missing,
    blocked,
    moved,
    no_change,
    not_reopened,
    when,
)

PREFIX: Final = "Draft: "
DEVELOPER: Final = 30
MAINTAINER: Final = 40
WAITING: Final = ("unchecked", "checking", "preparing", "approvals_syncing", "cannot_be_merged_recheck")
FREE: Final = (*WAITING, "mergeable", "can_be_merged", "draft_status", "cannot_be_merged", "conflict", "not_open", "")
REASONS: Final[Mapping[str, str]] = {
    "not_approved": "an approval is missing",
    "requested_changes": "a reviewer requested changes",
    "ci_must_pass": "its pipeline has to pass",
    "ci_still_running": "its pipeline still runs",
    "discussions_not_resolved": "threads are not resolved",
    "need_rebase": "it has to be rebased onto its base first",
    "merge_request_blocked": "another merge request has to be merged first",
}
CHECKS: Final[Mapping[str, str]] = {"success": "passed", "failed": "failed", "canceled": "failed"}
PENDING: Final = ("created", "waiting_for_resource", "preparing", "pending", "running", "scheduled")
REVIEWS: Final[Mapping[str, str]] = {
    "approved": "approved",
    "requested_changes": "changes_requested",
    "reviewed": "commented",
}


class GitLabForge(HostedForge):
    name: ClassVar[str] = "gitlab"
    body_limit: ClassVar[int] = 500_000

    def service(self, http: Http, ends: Ends) -> Service:
        return GitLab(http, ends)

    def headers(self, token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}


@dataclass(frozen=True, slots=True)
class GitLab:
    http: Http
    ends: Ends

    @property
    def _project(self) -> str:
        return f"/projects/{self.ends.base.quoted}"

    async def access(self) -> Access:
        me = (await self.http.get("/user", "asking who the token is")).body
        rights = (await self._seen()).get("permissions") or {}
        levels = [(rights.get(name) or {}).get("access_level", 0) for name in ("project_access", "group_access")]
        return Access(me["username"], push=max(levels) >= DEVELOPER)

    async def _seen(self) -> Mapping[str, Any]:
        found = await self.http.get(self._project, "looking at the project", also=(404,))
        if found.status == 404:
            raise NotFound(
                f"{self.ends.base.host} shows no project {self.ends.base.project} to this token",
                code="FORGE_NOT_FOUND",
                details={"host": self.ends.base.host, "repository": self.ends.base.project},
                kept=_faults.KEPT,
                next="Check the remote's address, that the token has the scope api, and that its user is a member.",
            )
        seen: Mapping[str, Any] = found.body
        return seen

    async def tip(self, branch: str) -> str:
        path = f"/projects/{self.ends.head.quoted}/repository/branches/{quote(branch, safe='')}"
        found = await self.http.get(path, f"looking at {branch}", also=(404,))
        if found.status == 404:
            await self._seen()
            return ""
        return str(found.body["commit"]["id"])

    async def ahead(self, draft: ChangeDraft) -> int:
        query: dict[str, Any] = {"from": draft.base, "to": draft.branch}
        if self.ends.forked:
            query["from_project_id"] = (await self._seen())["id"]
        path = f"/projects/{self.ends.head.quoted}/repository/compare"
        found = await self.http.get(path, "comparing", query=query, also=(404,))
        if found.status == 404:
            raise base_missing(draft.base)
        return len(found.body["commits"])

    async def newest(self, branch: str) -> Pull | None:
        query = {"source_branch": branch, "state": "all", "order_by": "created_at", "sort": "desc", "per_page": 20}
        found = await self.http.get(
            f"{self._project}/merge_requests", f"looking for the change of {branch}", query=query
        )
        home = await self._home(self.ends.head.quoted) if self.ends.forked and found.body else 0
        own = (one for one in found.body if (one["source_project_id"] == (home or one["target_project_id"])))
        first = next(own, None)
        return await self.get(first["iid"]) if first else None

    async def _home(self, project: str) -> int:
        return int((await self.http.get(f"/projects/{project}", "looking at the fork")).body["id"])

    async def get(self, number: int) -> Pull:
        found = await self.http.get(
            f"{self._project}/merge_requests/{number}", f"reading change #{number}", also=(404,)
        )
        if found.status == 404:
            await self._seen()  # a project that is not there is another matter
            raise no_change(number)
        return _pull(found.body, self.ends)

    async def create(self, draft: ChangeDraft) -> Pull:
        body: dict[str, Any] = {
            "source_branch": draft.branch,
            "target_branch": draft.base,
            "title": PREFIX + draft.title if draft.draft else draft.title,
            "description": draft.body,
            "remove_source_branch": False,
        }
        if self.ends.forked:
            body["target_project_id"] = (await self._seen())["id"]
        path = f"/projects/{self.ends.head.quoted}/merge_requests"
        made = await self.http.send("POST", path, "opening the change", body=body, also=(409,))
        if made.status == 409:
            raise Exists(made.said)
        return _pull(made.body, self.ends)

    async def edit(self, pull: Pull, draft: ChangeDraft) -> None:
        title = PREFIX + draft.title if pull.change.status is ChangeStatus.DRAFT else draft.title
        body = {"title": title, "description": draft.body, "target_branch": draft.base}
        await self._put(pull.number, body, "changing the change")

    async def ready(self, pull: Pull) -> None:
        await self._put(pull.number, {"title": pull.change.title}, "making the change ready")

    async def unready(self, pull: Pull) -> None:
        await self._put(pull.number, {"title": PREFIX + pull.change.title}, "making the change a draft again")

    async def methods(self) -> tuple[str, ...]:
        """``rebase`` only where the project fast-forwards: elsewhere GitLab would move the head that was approved."""
        seen = await self._seen()
        own = "rebase" if seen.get("merge_method") == "ff" else "merge"
        squash = seen.get("squash_option", "default_off")
        if squash == "always":
            return ("squash",)
        return (own,) if squash == "never" else (own, "squash")

    async def checks(self, pull: Pull) -> tuple[Check, ...]:
        path = f"/projects/{self.ends.head.quoted}/repository/commits/{pull.change.head}/statuses"
        found = []
        async for one in self.http.pages(path, "reading the checks", query={"per_page": 100}):
            state = "pending" if one["status"] in PENDING else CHECKS.get(one["status"], "")
            if state == "failed" and one.get("allow_failure"):
                state = "passed"
            if state:  # skipped jobs and those that wait for a person say nothing
                found.append(Check(one["name"], state, one.get("target_url") or ""))
        return tuple(found)

    async def reviews(self, pull: Pull) -> tuple[Review, ...]:
        path = f"{self._project}/merge_requests/{pull.number}"
        given = (await self.http.get(f"{path}/approvals", "reading the approvals", also=(404,))).body or {}
        asked = await self.http.get(f"{path}/reviewers", "reading the reviewers", also=(404,))
        found = {one["user"]["username"]: "approved" for one in given.get("approved_by", ())}
        for one in asked.body if asked.status == 200 else ():
            if one["state"] in REVIEWS:
                found.setdefault(one["user"]["username"], REVIEWS[one["state"]])
        return tuple(Review(author, state) for author, state in found.items())

    async def comments(self, number: int, since: datetime | None) -> AsyncIterator[Comment]:  # noqa: ARG002 - no such filter
        path, query = f"{self._project}/merge_requests/{number}/notes", {"sort": "asc", "per_page": 100}
        async for one in self.http.pages(path, "reading the comments", query=query):
            at = one.get("position") or {}
            if not one["system"]:
                yield Comment(
                    str(one["id"]),
                    one["author"]["username"],
                    when(one["created_at"]),
                    one["body"],
                    at.get("new_path") or at.get("old_path") or "",
                    at.get("new_line") or at.get("old_line") or 0,
                )

    async def merge(self, pull: Pull, method: str) -> bool:
        body: dict[str, Any] = {"sha": pull.change.head, "squash": method == "squash"}
        train = (await self._seen()).get("merge_trains_enabled")
        if train:
            path, verb = f"{self._project}/merge_trains/merge_requests/{pull.number}", "POST"
        else:
            path, verb = f"{self._project}/merge_requests/{pull.number}/merge", "PUT"
            body["should_remove_source_branch"] = False
        done = await self.http.send(verb, path, "merging", body=body, also=(401, 405, 406, 409, 422))
        if done.status == 409:
            now = await self.get(pull.number)
            if now.change.head != pull.change.head:
                raise moved(now, pull.change.head)
            raise blocked(pull, done.said)
        if done.status == 401:
            await self.access()  # GitLab says 401 of a token that is well and of a user who may not merge
            raise blocked(pull, "this account may not merge into that branch")
        if done.status >= 300:
            raise blocked(pull, done.said)
        return bool(train)

    async def close(self, number: int) -> None:
        await self._put(number, {"state_event": "close"}, "closing the change")

    async def reopen(self, number: int) -> None:
        path, body = f"{self._project}/merge_requests/{number}", {"state_event": "reopen"}
        done = await self.http.send("PUT", path, "reopening the change", body=body, also=(409, 422), again=True)
        if done.status >= 300:
            raise not_reopened(number, done.said)

    async def note(self, number: int, text: str) -> None:
        await self.http.send(
            "POST", f"{self._project}/merge_requests/{number}/notes", "commenting", body={"body": text}
        )

    async def _put(self, number: int, body: Mapping[str, Any], what: str) -> None:
        await self.http.send("PUT", f"{self._project}/merge_requests/{number}", what, body=body, again=True)


def _pull(raw: Mapping[str, Any], ends: Ends) -> Pull:
    status = _status(raw)
    over = status in (ChangeStatus.MERGED, ChangeStatus.CLOSED)
    detail = raw.get("detailed_merge_status") or raw.get("merge_status") or ""
    change = Change(
        ref=ChangeRef(raw["iid"]),
        url=raw["web_url"],
        status=status,
        title=_bare(raw["title"]),
        branch=raw["source_branch"],
        base=raw["target_branch"],
        head=raw["sha"] or "",
    )
    mergeable: Literal["yes", "no", "unknown"] = "unknown"
    if not over and detail not in WAITING:
        conflicts = raw.get("has_conflicts") or detail in ("conflict", "cannot_be_merged")
        mergeable = "no" if conflicts else "yes"
    queued = not over and (bool(raw.get("merge_when_pipeline_succeeds")) or raw["state"] == "locked")
    state = ChangeState(
        change,
        raw["description"] or "",
        merge_sha=_merge_of(raw) if status is ChangeStatus.MERGED else "",
        repository="" if raw["source_project_id"] == raw["target_project_id"] else ends.head.project,
        mergeable=mergeable,
        blocked="" if over or queued or detail in FREE else REASONS.get(detail, detail.replace("_", " ")),
        queued=queued,
    )
    return Pull(state, id=str(raw["id"]), waits=not over and detail in WAITING)


def _status(raw: Mapping[str, Any]) -> ChangeStatus:
    if raw["state"] == "merged":
        return ChangeStatus.MERGED
    if raw["state"] == "closed":
        return ChangeStatus.CLOSED
    return ChangeStatus.DRAFT if raw.get("draft", raw.get("work_in_progress")) else ChangeStatus.OPEN


def _merge_of(raw: Mapping[str, Any]) -> str:
    """A fast-forward has no commit of its own: then it is the head."""
    return str(raw.get("merge_commit_sha") or raw.get("squash_commit_sha") or raw["sha"] or "")


def _bare(title: str) -> str:
    for prefix in ("draft:", "[draft]", "(draft)", "wip:", "[wip]"):
        if title.lower().startswith(prefix):
            return title[len(prefix) :].strip()
    return title
