"""Gitea and Forgejo (Codeberg). A draft is a word before the title."""

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
    conflicting,
    moved,
    no_change,
    not_reopened,
    when,
)

PREFIX: Final = "WIP: "
REVIEWS: Final[Mapping[str, str]] = {
    "APPROVED": "approved",
    "REQUEST_CHANGES": "changes_requested",
    "COMMENT": "commented",
}
CHECKS: Final[Mapping[str, str]] = {"success": "passed", "warning": "passed", "pending": "pending"}


class GiteaForge(HostedForge):
    name: ClassVar[str] = "gitea"

    def service(self, http: Http, ends: Ends) -> Service:
        return Gitea(http, ends)

    def headers(self, token: str) -> dict[str, str]:
        return {"Authorization": f"token {token}", "Accept": "application/json"}


@dataclass(frozen=True, slots=True)
class Gitea:
    http: Http
    ends: Ends

    @property
    def _repo(self) -> str:
        return f"/repos/{self.ends.base.project}"

    async def access(self) -> Access:
        me = await self.http.get("/user", "asking who the token is", also=(403,))  # the scope read:user is not needed
        rights = (await self._seen()).get("permissions") or {}
        login = me.body["login"] if me.status == 200 else "a token that may not say its user"
        return Access(login, push=bool(rights.get("push")))

    async def _seen(self) -> Mapping[str, Any]:
        found = await self.http.get(self._repo, "looking at the repository", also=(404,))
        if found.status == 404:
            raise NotFound(
                f"{self.ends.base.host} shows no repository {self.ends.base.project} to this token",
                code="FORGE_NOT_FOUND",
                details={"host": self.ends.base.host, "repository": self.ends.base.project},
                kept=_faults.KEPT,
                next="Check the remote's address, and that the token's user may see the repository.",
            )
        seen: Mapping[str, Any] = found.body
        return seen

    async def tip(self, branch: str) -> str:
        path = f"/repos/{self.ends.head.project}/branches/{quote(branch, safe='')}"
        found = await self.http.get(path, f"looking at {branch}", also=(404,))
        if found.status == 404:
            await self._seen()
            return ""
        return str(found.body["commit"]["id"])

    async def ahead(self, draft: ChangeDraft) -> int:
        span = f"{quote(draft.base, safe='')}...{quote(self._head(draft.branch), safe=':')}"
        found = await self.http.get(f"{self._repo}/compare/{span}", "comparing", also=(404,))
        if found.status == 404:
            raise base_missing(draft.base)
        return int(found.body["total_commits"])

    async def newest(self, branch: str) -> Pull | None:
        """There is no filter by branch, so the list is read, newest first, until it turns up."""
        query = {"state": "all", "limit": 50}
        async for one in self.http.pages(f"{self._repo}/pulls", f"looking for the change of {branch}", query=query):
            home = (one["head"].get("repo") or {}).get("full_name", self.ends.head.project)
            if one["head"]["ref"] == branch and home.lower() == self.ends.head.project.lower():
                return _pull(one, self.ends)
        return None

    async def get(self, number: int) -> Pull:
        found = await self.http.get(f"{self._repo}/pulls/{number}", f"reading change #{number}", also=(404,))
        if found.status == 404:
            await self._seen()  # a repository that is not there is another matter
            raise no_change(number)
        return _pull(found.body, self.ends)

    async def create(self, draft: ChangeDraft) -> Pull:
        title = PREFIX + draft.title if draft.draft else draft.title
        body = {"title": title, "body": draft.body, "head": self._head(draft.branch), "base": draft.base}
        made = await self.http.send("POST", f"{self._repo}/pulls", "opening the change", body=body, also=(409,))
        if made.status == 409:
            raise Exists(made.said)
        return _pull(made.body, self.ends)

    async def edit(self, pull: Pull, draft: ChangeDraft) -> None:
        title = PREFIX + draft.title if pull.change.status is ChangeStatus.DRAFT else draft.title
        await self._patch(pull.number, {"title": title, "body": draft.body, "base": draft.base})

    async def ready(self, pull: Pull) -> None:
        await self._patch(pull.number, {"title": pull.change.title})

    async def unready(self, pull: Pull) -> None:
        await self._patch(pull.number, {"title": PREFIX + pull.change.title})

    async def methods(self) -> tuple[str, ...]:
        seen = await self._seen()
        names = (("merge", "allow_merge_commits"), ("squash", "allow_squash_merge"), ("rebase", "allow_rebase"))
        allowed = [method for method, name in names if seen.get(name, True)]
        own = seen.get("default_merge_style", "")
        return tuple(sorted(allowed, key=lambda method: method != own))

    async def checks(self, pull: Pull) -> tuple[Check, ...]:
        path = f"{self._repo}/commits/{pull.change.head}/status"
        found = await self.http.get(path, "reading the checks", also=(404,))
        states = (found.body or {}).get("statuses") or () if found.status == 200 else ()
        return tuple(Check(s["context"], CHECKS.get(s["status"], "failed"), s.get("target_url") or "") for s in states)

    async def reviews(self, pull: Pull) -> tuple[Review, ...]:
        found = []
        async for one in self._reviewed(pull.number):
            state = REVIEWS.get(one["state"])
            if state and not one.get("dismissed") and (one["body"] or state != "commented"):
                at = when(one.get("submitted_at"))
                found.append(Review(_login(one), state, one["body"], one.get("commit_id") or "", at))
        return tuple(found)

    async def comments(self, number: int, since: datetime | None) -> AsyncIterator[Comment]:
        query = {"since": since.isoformat(timespec="seconds")} if since else {}
        async for one in self.http.pages(f"{self._repo}/issues/{number}/comments", "reading the comments", query=query):
            yield Comment(f"issue-{one['id']}", _login(one), when(one["created_at"]), one["body"])
        async for review in self._reviewed(number):
            path = f"{self._repo}/pulls/{number}/reviews/{review['id']}/comments"
            found = (await self.http.get(path, "reading the comments")).body if review.get("comments_count") else ()
            for one in found:
                line = one.get("position") or one.get("original_position") or 0
                yield Comment(
                    f"review-{one['id']}", _login(one), when(one["created_at"]), one["body"], one["path"], line
                )

    def _reviewed(self, number: int) -> AsyncIterator[Any]:
        return self.http.pages(f"{self._repo}/pulls/{number}/reviews", "reading the reviews", query={"limit": 50})

    async def merge(self, pull: Pull, method: str) -> bool:
        body = {"Do": method, "head_commit_id": pull.change.head, "delete_branch_after_merge": False}
        path = f"{self._repo}/pulls/{pull.number}/merge"
        done = await self.http.send("POST", path, "merging", body=body, also=(405, 409))
        if done.status == 405:
            raise blocked(pull, done.said)
        if done.status == 409:
            now = await self.get(pull.number)
            raise moved(now, pull.change.head) if now.change.head != pull.change.head else conflicting(pull)
        return False

    async def close(self, number: int) -> None:
        await self._patch(number, {"state": "closed"})

    async def reopen(self, number: int) -> None:
        path, body = f"{self._repo}/pulls/{number}", {"state": "open"}
        done = await self.http.send("PATCH", path, "reopening the change", body=body, also=(409, 412, 422), again=True)
        if done.status >= 300:
            raise not_reopened(number, done.said)

    async def note(self, number: int, text: str) -> None:
        await self.http.send("POST", f"{self._repo}/issues/{number}/comments", "commenting", body={"body": text})

    def _head(self, branch: str) -> str:
        return f"{self.ends.head.project.partition('/')[0]}:{branch}" if self.ends.forked else branch

    async def _patch(self, number: int, body: Mapping[str, Any]) -> None:
        await self.http.send("PATCH", f"{self._repo}/pulls/{number}", "changing the change", body=body, again=True)


def _pull(raw: Mapping[str, Any], ends: Ends) -> Pull:
    status = _status(raw)
    change = Change(
        ref=ChangeRef(raw["number"]),
        url=raw["html_url"],
        status=status,
        title=_bare(raw["title"]),
        branch=raw["head"]["ref"],
        base=raw["base"]["ref"],
        head=raw["head"]["sha"],
    )
    home = (raw["head"].get("repo") or {}).get("full_name", "")
    mergeable: Literal["yes", "no", "unknown"] = "unknown"
    if status is ChangeStatus.OPEN:  # false for a draft, whatever base and head are
        mergeable = "yes" if raw["mergeable"] else "no"
    state = ChangeState(
        change,
        raw["body"] or "",
        merge_sha=(raw.get("merge_commit_sha") or "") if status is ChangeStatus.MERGED else "",
        repository="" if home.lower() == ends.base.project.lower() else home,
        mergeable=mergeable,
    )
    return Pull(state, id=str(raw["id"]), waits=mergeable == "no")  # also false while it is being worked out


def _status(raw: Mapping[str, Any]) -> ChangeStatus:
    if raw.get("merged"):
        return ChangeStatus.MERGED
    if raw["state"] == "closed":
        return ChangeStatus.CLOSED
    draft = raw.get("draft", raw["title"] != _bare(raw["title"]))
    return ChangeStatus.DRAFT if draft else ChangeStatus.OPEN


def _bare(title: str) -> str:
    for prefix in ("wip:", "[wip]"):
        if title.lower().startswith(prefix):
            return title[len(prefix) :].strip()
    return title


def _login(raw: Mapping[str, Any]) -> str:
    return str((raw.get("user") or {}).get("login", "somebody"))
