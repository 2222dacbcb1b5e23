"""GitHub's API as far as the adapter goes, held against GitHub's own description when BEADMILL_TEST_GITHUB_API names it
(``api.github.com.json`` of the npm package @octokit/openapi). GraphQL is held by the exact words of each question."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from beadmill.forges import github
from tests.forges.fakes.hub import AT, Asked, Change, Hub, Route, Told
from tests.forges.fakes.openapi import Spec, load

API = os.environ.get("BEADMILL_TEST_GITHUB_API", "")
REPO = r"/repos/([^/]+/[^/]+)"


class GitHubHub(Hub):
    root = "/api/v3"
    said_token = "Bearer"
    scopes: str | None = "repo, workflow"
    drafts = True

    def spec(self) -> Spec | None:
        return load(Path(API)) if API else None

    def routes(self) -> Iterator[Route]:
        yield "GET", "/user", self._user
        yield "GET", REPO, self._repo
        yield "GET", rf"{REPO}/git/ref/heads/(.+)", self._ref
        yield "GET", rf"{REPO}/compare/(.+)\.\.\.(.+)", self._compare
        yield "GET", rf"{REPO}/pulls", self._list
        yield "POST", rf"{REPO}/pulls", self._create
        yield "GET", rf"{REPO}/pulls/(\d+)", self._get
        yield "PATCH", rf"{REPO}/pulls/(\d+)", self._patch
        yield "PUT", rf"{REPO}/pulls/(\d+)/merge", self._merge
        yield "GET", rf"{REPO}/pulls/(\d+)/reviews", self._reviews
        yield "GET", rf"{REPO}/commits/(\w+)/check-runs", self._runs
        yield "GET", rf"{REPO}/commits/(\w+)/status", self._status
        yield "GET", rf"{REPO}/issues/(\d+)/comments", self._notes
        yield "POST", rf"{REPO}/issues/(\d+)/comments", self._note
        yield "GET", rf"{REPO}/pulls/(\d+)/comments", self._lines
        yield "POST", r"/api/graphql", self._graphql

    def _user(self, _: Asked) -> Told:
        scopes = {} if self.scopes is None else {"X-OAuth-Scopes": self.scopes}
        return Told(200, {"login": "robot"}, scopes)

    def _repo(self, _: Asked, name: str) -> Told:
        if name not in self.repos:
            return self.refused(404, "Not Found")
        rights = {"admin": False, "pull": True, "push": self.pushes}
        allows = {
            "allow_merge_commit": "merge" in self.methods,
            "allow_squash_merge": "squash" in self.methods,
            "allow_rebase_merge": "rebase" in self.methods,
        }
        return Told(200, {"full_name": name, "permissions": rights, **allows})

    def _ref(self, _: Asked, name: str, branch: str) -> Told:
        sha = self.tip(name, branch) if name in self.repos else ""
        return Told(200, {"object": {"sha": sha}}) if sha else self.refused(404, "Not Found")

    def _compare(self, _: Asked, _name: str, base: str, head: str) -> Told:
        ahead = self.ahead(base, *self._head(head))
        return self.refused(404, "Not Found") if ahead is None else Told(200, {"ahead_by": ahead})

    def _list(self, asked: Asked, _name: str) -> Told:
        home, branch = self._head(asked.query["head"])
        found = [self._pull(c) for c in reversed(self.changes) if (c.home, c.branch) == (home, branch)]
        short = ("mergeable", "mergeable_state", "merged")
        return Told(200, [{k: v for k, v in one.items() if k not in short} for one in found[:1]])

    def _create(self, asked: Asked, _name: str) -> Told:
        body = asked.body
        home, branch = self._head(body["head"])
        if not self.tip(home, branch):
            return self._invalid("head", "Head sha can't be blank")
        if body["draft"] and not self.drafts:
            return self._invalid("base", "Draft pull requests are not supported in this repository.")
        if not self.ahead(body["base"], home, branch):
            return self._invalid("base", f"No commits between {body['base']} and {branch}")
        made = self.open(home, branch, base=body["base"], title=body["title"], body=body["body"], draft=body["draft"])
        if made is None:
            return self._invalid("head", f"A pull request already exists for {body['head']}.")
        return Told(201, self._pull(made))

    def _invalid(self, name: str, words: str) -> Told:
        errors = [{"resource": "PullRequest", "code": "custom", "field": name, "message": words}]
        return Told(422, {"message": "Validation Failed", "documentation_url": "", "errors": errors})

    def _get(self, _: Asked, _name: str, number: str) -> Told:
        found = self.change(number)
        return Told(200, self._pull(found)) if found else self.refused(404, "Not Found")

    def _patch(self, asked: Asked, _name: str, number: str) -> Told:
        found = self.change(number)
        if found is None:
            return self.refused(404, "Not Found")
        if asked.body.get("state") == "open" and not self.tip(found.home, found.branch):
            return self._invalid("state", f"state cannot be changed. The {found.branch} branch has been deleted.")
        for name in ("title", "body", "base", "state"):
            setattr(found, name, asked.body.get(name, getattr(found, name)))
        return Told(200, self._pull(found))

    def _merge(self, asked: Asked, _name: str, number: str) -> Told:
        found = self.change(number)
        if found is None:
            return self.refused(404, "Not Found")
        if found.head != asked.body["sha"]:
            return self.refused(409, "Head branch was modified. Review and try the merge again.")
        if found.draft or self.blocked or self.queue or found.state != "open":
            return self.refused(405, self.blocked or "Pull Request is not mergeable")
        self.merge(found, asked.body["merge_method"])
        return Told(200, {"sha": found.merge_sha, "merged": True, "message": "Pull Request successfully merged"})

    def _reviews(self, asked: Asked, name: str, number: str) -> Told:
        found = self.change(number)
        return self._paged(asked, f"/repos/{name}/pulls/{number}/reviews", found.reviews if found else [])

    def _runs(self, _: Asked, _name: str, _sha: str) -> Told:
        runs = [s for s in self.statuses if "conclusion" in s]
        return Told(200, {"total_count": len(runs), "check_runs": runs})

    def _status(self, _: Asked, _name: str, sha: str) -> Told:
        return Told(200, {"sha": sha, "statuses": [s for s in self.statuses if "conclusion" not in s]})

    def _notes(self, asked: Asked, name: str, number: str) -> Told:
        found = self.change(number)
        since = asked.query.get("since", "")
        notes = [n for n in found.notes if n["updated_at"] >= since] if found else []
        return self._paged(asked, f"/repos/{name}/issues/{number}/comments", notes)

    def _note(self, asked: Asked, _name: str, number: str) -> Told:
        found = self.change(number)
        assert found is not None
        found.notes.append(note(len(found.notes) + 1, "robot", asked.body["body"]))
        return Told(201, found.notes[-1])

    def _lines(self, asked: Asked, name: str, number: str) -> Told:
        found = self.change(number)
        return self._paged(asked, f"/repos/{name}/pulls/{number}/comments", found.lines if found else [])

    def _paged(self, asked: Asked, path: str, items: list[Any]) -> Told:
        page = int(asked.query.get("page", 1))
        here, more = items[(page - 1) * self.page : page * self.page], len(items) > page * self.page
        link = f'<{self.url}{self.root}{path}?page={page + 1}>; rel="next", <{self.url}>; rel="last"'
        return Told(200, here, {"Link": link} if more else {})

    def _graphql(self, asked: Asked) -> Told:
        query, wanted = asked.body["query"], asked.body["variables"]
        if query == github.QUEUE:
            found = self.change(wanted["number"])
            state = {"isInMergeQueue": bool(found and found.queued), "isMergeQueueEnabled": self.queue}
            return Told(200, {"data": {"repository": {"pullRequest": state}}})
        found = self.change(wanted["id"].removeprefix("PR_"))
        verb = re.search(r"\{(\w+)\(input", query)
        if found is None or verb is None:
            return Told(
                200, {"data": None, "errors": [{"type": "NOT_FOUND", "message": "Could not resolve to a node"}]}
            )
        if query == github.ENQUEUE and wanted["head"] == found.head:
            found.queued = True
        elif query in (github.READY, github.DRAFT):
            found.draft = query == github.DRAFT
        else:
            return Told(200, {"data": None, "errors": [{"type": "UNPROCESSABLE", "message": "Head has moved"}]})
        return Told(200, {"data": {verb[1]: {"clientMutationId": None}}})

    def _head(self, label: str) -> tuple[str, str]:
        """The repository and the branch of ``owner:branch``."""
        owner, colon, branch = label.partition(":")
        if not colon:
            return self.project, label
        return next((name for name in self.repos if name.startswith(f"{owner}/")), ""), branch

    def _pull(self, change: Change) -> dict[str, Any]:
        change = self.fresh(change)
        over = change.state != "open"
        merges = None if over else self.merges(change)
        state = "unknown" if merges is None else "dirty" if not merges else "draft" if change.draft else ""
        return {
            "number": change.number,
            "node_id": f"PR_{change.number}",
            "html_url": f"{self.url}/{self.project}/pull/{change.number}",
            "state": "open" if not over else "closed",
            "draft": change.draft,
            "title": change.title,
            "body": change.body,
            "merged": change.state == "merged",
            "merged_at": AT if change.state == "merged" else None,
            "merge_commit_sha": change.merge_sha or "1" * 40,
            "mergeable": merges,
            "mergeable_state": state or ("blocked" if self.blocked else "clean"),
            "head": self._end(change.home, change.branch, change.head),
            "base": self._end(self.project, change.base, self.tip(self.project, change.base)),
        }

    def _end(self, repo: str, branch: str, sha: str) -> dict[str, Any]:
        return {"ref": branch, "sha": sha, "repo": {"full_name": repo}}


def note(number: int, author: str, body: str, at: str = AT) -> dict[str, Any]:
    return {"id": number, "user": {"login": author}, "created_at": at, "updated_at": at, "body": body}


def review(number: int, author: str, state: str, body: str = "") -> dict[str, Any]:
    return {
        "id": number, "user": {"login": author}, "state": state, "body": body, "commit_id": "2" * 40, "submitted_at": AT,
    }  # fmt: skip
