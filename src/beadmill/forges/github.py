"""GitHub, in the cloud and at a company (REST, and GraphQL where REST has no word: drafts and merge queues)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Literal
from urllib.parse import quote

from beadmill.errors import NotFound, Refused, Stale
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

BLOCKED: Final[Mapping[str, str]] = {
    "blocked": "a rule of the base branch is not satisfied (a required review or check)",
    "behind": "the rule of the base branch wants it brought up to date first",
}
REVIEWS: Final[Mapping[str, str]] = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "changes_requested",
    "COMMENTED": "commented",
}
PASSED: Final = ("success", "neutral", "skipped")
QUEUE: Final = (
    "query($owner:String!,$name:String!,$number:Int!){repository(owner:$owner,name:$name)"
    "{pullRequest(number:$number){isInMergeQueue isMergeQueueEnabled}}}"
)
READY: Final = "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){clientMutationId}}"
DRAFT: Final = "mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){clientMutationId}}"
ENQUEUE: Final = (
    "mutation($id:ID!,$head:GitObjectID!){enqueuePullRequest(input:{pullRequestId:$id,expectedHeadOid:$head})"
    "{clientMutationId}}"
)


class GitHubForge(HostedForge):
    name: ClassVar[str] = "github"

    def service(self, http: Http, ends: Ends) -> Service:
        return GitHub(http, ends)

    def headers(self, token: str) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }


@dataclass(frozen=True, slots=True)
class GitHub:
    http: Http
    ends: Ends

    @property
    def _repo(self) -> str:
        return f"/repos/{self.ends.base.project}"

    async def access(self) -> Access:
        me = await self.http.get("/user", "asking who the token is", also=(403,))  # an app's token is nobody
        scopes = me.headers.get("x-oauth-scopes")
        seen = await self.http.get(self._repo, "looking at the repository", also=(404,))
        if seen.status == 404:
            raise self._unseen(scopes)
        rights = seen.body.get("permissions") or {}
        login = me.body["login"] if me.status == 200 else "an app"
        return Access(login, push=bool(rights.get("push")) or me.status == 403)

    def _unseen(self, scopes: str | None) -> Refused | NotFound:
        """GitHub answers 404 for both: only a token of the old kind says what it may."""
        place, host = self.ends.base.project, self.ends.base.host
        if scopes is not None and "repo" not in [scope.strip() for scope in scopes.split(",")]:
            return Refused(
                f"{host} shows no {place}: the token lacks the scope repo (it has {scopes or 'none'})",
                code="FORGE_SCOPE",
                details={"host": host, "scopes": scopes, "wanted": "repo"},
                kept=_faults.KEPT,
                next="Give the token the scope repo, then retry.",
            )
        return NotFound(
            f"{host} shows no repository {place} to this token",
            code="FORGE_NOT_FOUND",
            details={"host": host, "repository": place},
            kept=_faults.KEPT,
            next="Check the remote's address, and that the token may see the repository (fine-grained tokens name theirs).",
        )

    async def tip(self, branch: str) -> str:
        path = f"/repos/{self.ends.head.project}/git/ref/heads/{quote(branch)}"
        found = await self.http.get(path, f"looking at {branch}", also=(404, 409))
        if found.status == 404:
            await self.access()
        return str(found.body["object"]["sha"]) if found.status == 200 else ""

    async def ahead(self, draft: ChangeDraft) -> int:
        span = f"{quote(draft.base)}...{quote(self._head(draft.branch), safe=':/')}"
        found = await self.http.get(f"{self._repo}/compare/{span}", "comparing", query={"per_page": 1}, also=(404,))
        if found.status == 404:
            raise base_missing(draft.base)
        return int(found.body["ahead_by"])

    async def newest(self, branch: str) -> Pull | None:
        query = {"head": self._head(branch), "state": "all", "sort": "created", "direction": "desc", "per_page": 1}
        found = await self.http.get(f"{self._repo}/pulls", f"looking for the change of {branch}", query=query)
        return _pull(found.body[0], self.ends) if found.body else None

    async def get(self, number: int) -> Pull:
        found = await self.http.get(f"{self._repo}/pulls/{number}", f"reading change #{number}", also=(404,))
        if found.status == 404:
            await self.access()  # a repository that is not there is another matter
            raise no_change(number)
        pull = _pull(found.body, self.ends)
        queued = pull.change.status is ChangeStatus.OPEN and (await self._queue(number))["isInMergeQueue"]
        return _pull(found.body, self.ends, queued=bool(queued))

    async def create(self, draft: ChangeDraft) -> Pull:
        body = {
            "title": draft.title,
            "body": draft.body,
            "head": self._head(draft.branch),
            "base": draft.base,
            "draft": draft.draft,
        }
        if self.ends.forked:
            body["head_repo"] = self.ends.head.project.partition("/")[2]
        made = await self._post_pull(body)
        if made.status == 422 and draft.draft and "draft" in made.said.lower():  # private, and a plan without drafts
            made = await self._post_pull({**body, "draft": False})
        if made.status == 201:
            return _pull(made.body, self.ends)
        if "already exists" in made.said.lower():
            raise Exists(made.said)
        raise self._error(made, "opening the change")

    async def _post_pull(self, body: Mapping[str, Any]) -> _faults.Answer:
        return await self.http.send("POST", f"{self._repo}/pulls", "opening the change", body=body, also=(422,))

    async def edit(self, pull: Pull, draft: ChangeDraft) -> None:
        body = {"title": draft.title, "body": draft.body}
        if pull.change.base != draft.base:
            body["base"] = draft.base
        await self._patch(pull.number, body)

    async def ready(self, pull: Pull) -> None:
        await self._graphql(READY, {"id": pull.id}, "making the change ready")

    async def unready(self, pull: Pull) -> None:
        await self._graphql(DRAFT, {"id": pull.id}, "making the change a draft again")

    async def methods(self) -> tuple[str, ...]:
        allows = (await self.http.get(self._repo, "looking at the repository")).body
        names = (("merge", "allow_merge_commit"), ("squash", "allow_squash_merge"), ("rebase", "allow_rebase_merge"))
        return tuple(method for method, name in names if allows.get(name, True))

    async def checks(self, pull: Pull) -> tuple[Check, ...]:
        at = f"{self._repo}/commits/{pull.change.head}"
        runs = await self.http.get(f"{at}/check-runs", "reading the checks", query={"per_page": 100}, also=(403, 404))
        states = await self.http.get(f"{at}/status", "reading the checks", query={"per_page": 100}, also=(403, 404))
        found = [_run(run) for run in runs.body.get("check_runs", ())] if runs.status == 200 else []
        if states.status == 200:
            found += [Check(s["context"], _state(s["state"]), s["target_url"] or "") for s in states.body["statuses"]]
        return tuple(found)

    async def reviews(self, pull: Pull) -> tuple[Review, ...]:
        path = f"{self._repo}/pulls/{pull.number}/reviews"
        return tuple(
            [
                Review(_login(r), REVIEWS[r["state"]], r["body"], r["commit_id"] or "", when(r.get("submitted_at")))
                async for r in self.http.pages(path, "reading the reviews", query={"per_page": 100})
                if r["state"] in REVIEWS and (r["body"] or r["state"] != "COMMENTED")
            ]
        )

    async def comments(self, number: int, since: datetime | None) -> AsyncIterator[Comment]:
        query = {"per_page": 100, **({"since": since.isoformat(timespec="seconds")} if since else {})}
        for kind in ("issues", "pulls"):
            path = f"{self._repo}/{kind}/{number}/comments"
            async for one in self.http.pages(path, "reading the comments", query=query):
                line = one.get("line") or one.get("original_line") or 0
                yield Comment(
                    f"{kind}-{one['id']}", _login(one), when(one["created_at"]), one["body"], one.get("path", ""), line
                )

    async def merge(self, pull: Pull, method: str) -> bool:
        if (await self._queue(pull.number))["isMergeQueueEnabled"]:
            wanted = {"id": pull.id, "head": pull.change.head}
            await self._graphql(ENQUEUE, wanted, "queueing the change")
            return True
        path, body = f"{self._repo}/pulls/{pull.number}/merge", {"sha": pull.change.head, "merge_method": method}
        done = await self.http.send("PUT", path, "merging", body=body, also=(405, 409, 422))
        if done.status == 409:
            raise await self._moved(pull)
        if done.status != 200:
            raise blocked(pull, done.said)
        return False

    async def close(self, number: int) -> None:
        await self._patch(number, {"state": "closed"})

    async def reopen(self, number: int) -> None:
        path, body = f"{self._repo}/pulls/{number}", {"state": "open"}
        done = await self.http.send("PATCH", path, "reopening the change", body=body, also=(422,), again=True)
        if done.status == 422:
            raise not_reopened(number, done.said)

    async def note(self, number: int, text: str) -> None:
        await self.http.send("POST", f"{self._repo}/issues/{number}/comments", "commenting", body={"body": text})

    def _head(self, branch: str) -> str:
        return f"{self.ends.head.project.partition('/')[0]}:{branch}"

    async def _patch(self, number: int, body: Mapping[str, Any]) -> None:
        await self.http.send("PATCH", f"{self._repo}/pulls/{number}", "changing the change", body=body, again=True)

    async def _moved(self, pull: Pull) -> Stale:
        return moved(await self.get(pull.number), pull.change.head)

    async def _queue(self, number: int) -> Mapping[str, bool]:
        """A company's older GitHub knows no queues, and its API says so with an error."""
        owner, _, name = self.ends.base.project.partition("/")
        wanted = {"owner": owner, "name": name, "number": number}
        try:
            data = await self._graphql(QUEUE, wanted, "looking at the merge queue")
        except (Refused, NotFound):
            data = {}
        found = (data.get("repository") or {}).get("pullRequest") or {}
        return {name: bool(found.get(name)) for name in ("isInMergeQueue", "isMergeQueueEnabled")}

    async def _graphql(self, query: str, variables: Mapping[str, Any], what: str) -> Mapping[str, Any]:
        """Each of ours may be done twice."""
        root = self.http.base.removesuffix("/v3")
        answer = await self.http.send(
            "POST", f"{root}/graphql", what, body={"query": query, "variables": variables}, again=True
        )
        if answer.body.get("errors"):
            raise self._error(_faults.Answer(422, answer.headers, {"errors": answer.body["errors"]}), what)
        data: Mapping[str, Any] = answer.body["data"]
        return data

    def _error(self, answer: _faults.Answer, what: str) -> Exception:
        return _faults.of(answer, host=self.http.host, what=what, now=self.http.nature.clock())


def _pull(raw: Mapping[str, Any], ends: Ends, *, queued: bool = False) -> Pull:
    """From the long form, and from the short one of a list, which says nothing of mergeability."""
    status = _status(raw)
    home = (raw["head"].get("repo") or {}).get("full_name", "")
    change = Change(
        ref=ChangeRef(raw["number"]),
        url=raw["html_url"],
        status=status,
        title=raw["title"],
        branch=raw["head"]["ref"],
        base=raw["base"]["ref"],
        head=raw["head"]["sha"],
    )
    over = status in (ChangeStatus.MERGED, ChangeStatus.CLOSED)
    mergeable: Literal["yes", "no", "unknown"] = "unknown"
    if not over and raw.get("mergeable") is not None:
        mergeable = "yes" if raw["mergeable"] else "no"
    state = ChangeState(
        change,
        raw["body"] or "",
        merge_sha=(raw["merge_commit_sha"] or "") if status is ChangeStatus.MERGED else "",
        repository="" if home.lower() == ends.base.project.lower() else home,
        mergeable=mergeable,
        blocked="" if over or queued else BLOCKED.get(raw.get("mergeable_state", ""), ""),
        queued=queued,
    )
    return Pull(state, id=raw["node_id"], waits=not over and mergeable == "unknown")


def _status(raw: Mapping[str, Any]) -> ChangeStatus:
    if raw.get("merged_at"):
        return ChangeStatus.MERGED
    if raw["state"] == "closed":
        return ChangeStatus.CLOSED
    return ChangeStatus.DRAFT if raw.get("draft") else ChangeStatus.OPEN


def _run(run: Mapping[str, Any]) -> Check:
    state = "pending" if run["status"] != "completed" else "passed" if run["conclusion"] in PASSED else "failed"
    return Check(run["name"], state, run["html_url"] or "")


def _state(word: str) -> str:
    return {"success": "passed", "pending": "pending"}.get(word, "failed")


def _login(raw: Mapping[str, Any]) -> str:
    return str((raw.get("user") or {}).get("login", "somebody"))
