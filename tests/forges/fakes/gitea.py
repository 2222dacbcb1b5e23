"""Gitea's API as far as the adapter goes, held against gitea_api.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.forges.fakes.gitea_api import SPEC
from tests.forges.fakes.hub import AT, Asked, Change, Hub, Route, Told
from tests.forges.fakes.openapi import Spec

R = "/repos/([^/]+/[^/]+)"
PULL = rf"{R}/pulls/(\d+)"


class GiteaHub(Hub):
    root = "/api/v1"
    said_token = "token"

    def spec(self) -> Spec:
        return SPEC

    def routes(self) -> Iterator[Route]:
        yield "GET", "/user", lambda _: Told(200, {"login": "robot"})
        yield "GET", R, self._repo
        yield "GET", f"{R}/branches/(.+)", self._branch
        yield "GET", rf"{R}/compare/(.+)\.\.\.(.+)", self._compare
        yield "GET", f"{R}/pulls", self._list
        yield "POST", f"{R}/pulls", self._create
        yield "GET", PULL, self._with(lambda _, c: Told(200, self._pull(c)))
        yield "PATCH", PULL, self._with(self._edit)
        yield "POST", f"{PULL}/merge", self._with(self._merge)
        yield "GET", f"{PULL}/reviews", self._with(lambda asked, c: self._paged(asked, c.reviews))
        yield "GET", rf"{PULL}/reviews/(\d+)/comments", self._lines
        yield "GET", rf"{R}/commits/(\w+)/status", self._status
        yield "GET", rf"{R}/issues/(\d+)/comments", self._with(self._notes)
        yield "POST", rf"{R}/issues/(\d+)/comments", self._with(self._note)

    def _with(self, act: Callable[[Asked, Change], Told]) -> Callable[..., Told]:
        def found(asked: Asked, name: str, number: str) -> Told:
            change = self.change(number) if name in self.repos else None
            return act(asked, change) if change else self.refused(404, "The target couldn't be found.")

        return found

    def _repo(self, _: Asked, name: str) -> Told:
        if name not in self.repos:
            return self.refused(404, "The target couldn't be found.")
        return Told(200, self._home(name))

    def _home(self, name: str) -> dict[str, Any]:
        return {
            "id": list(self.repos).index(name) + 1,
            "full_name": name,
            "permissions": {"admin": False, "push": self.pushes, "pull": True},
            "allow_merge_commits": "merge" in self.methods,
            "allow_squash_merge": "squash" in self.methods,
            "allow_rebase": "rebase" in self.methods,
            "default_merge_style": self.methods[0],
        }

    def _branch(self, _: Asked, name: str, branch: str) -> Told:
        sha = self.tip(name, branch) if name in self.repos else ""
        found = {"name": branch, "commit": {"id": sha}}
        return Told(200, found) if sha else self.refused(404, "The target couldn't be found.")

    def _compare(self, _: Asked, _name: str, base: str, head: str) -> Told:
        ahead = self.ahead(base, *self._head(head))
        return self.refused(404, "Not found") if ahead is None else Told(200, {"total_commits": ahead})

    def _list(self, asked: Asked, _name: str) -> Told:
        return self._paged(asked, [self._pull(c) for c in reversed(self.changes)])

    def _create(self, asked: Asked, _name: str) -> Told:
        body = asked.body
        home, branch = self._head(body["head"])
        if not self.tip(home, branch):
            return self.refused(404, "The target couldn't be found.")
        title, draft = _titled(body["title"])
        made = self.open(home, branch, base=body["base"], title=title, body=body["body"], draft=draft)
        if made is None:
            return self.refused(409, "pull request already exists for these targets [id: 1, issue_id: 1]")
        return Told(201, self._pull(made))

    def _edit(self, asked: Asked, change: Change) -> Told:
        body = asked.body
        if body.get("state") == "open" and not self.tip(change.home, change.branch):
            return self.refused(412, "the head branch is gone")
        if "title" in body:
            change.title, change.draft = _titled(body["title"])
        for name in ("body", "base", "state"):
            setattr(change, name, body.get(name, getattr(change, name)))
        return Told(201, self._pull(change))

    def _merge(self, asked: Asked, change: Change) -> Told:
        if asked.body["head_commit_id"] != change.head:
            return self.refused(409, "head out of date")
        if change.draft or change.state != "open" or self.blocked:
            return self.refused(405, self.blocked or "Please try again later")
        if not self.merges(change):
            return self.refused(409, "merge conflict")
        self.merge(change, asked.body["Do"])
        return Told(200)

    def _lines(self, _: Asked, _name: str, number: str, _review: str) -> Told:
        change = self.change(number)
        return Told(200, change.lines if change else [])

    def _status(self, _: Asked, _name: str, sha: str) -> Told:
        return Told(200, {"sha": sha, "statuses": self.statuses or None})

    def _notes(self, asked: Asked, change: Change) -> Told:
        since = asked.query.get("since", "")
        return Told(200, [n for n in change.notes if n["updated_at"] >= since])

    def _note(self, asked: Asked, change: Change) -> Told:
        change.notes.append(note(len(change.notes) + 1, "robot", asked.body["body"]))
        return Told(201, change.notes[-1])

    def _paged(self, asked: Asked, items: list[Any]) -> Told:
        page = int(asked.query.get("page", 1))
        link = f'<{self.url}{asked.path}?page={page + 1}>; rel="next"'
        here = items[(page - 1) * self.page : page * self.page]
        return Told(200, here, {"Link": link} if len(items) > page * self.page else {})

    def _head(self, label: str) -> tuple[str, str]:
        owner, colon, branch = label.partition(":")
        if not colon:
            return self.project, label
        return next((name for name in self.repos if name.startswith(f"{owner}/")), ""), branch

    def _pull(self, change: Change) -> dict[str, Any]:
        change = self.fresh(change)
        merged = change.state == "merged"
        return {
            "id": 1000 + change.number,
            "number": change.number,
            "title": f"WIP: {change.title}" if change.draft else change.title,
            "body": change.body,
            "state": "open" if change.state == "open" else "closed",
            "draft": change.draft,
            "html_url": f"{self.url}/{self.project}/pulls/{change.number}",
            "mergeable": change.state == "open" and not change.draft and bool(self.merges(change)),
            "merged": merged,
            "merged_at": AT if merged else None,
            "merge_commit_sha": change.merge_sha or None,
            "head": self._end(change.home, change.branch, change.head),
            "base": self._end(self.project, change.base, self.tip(self.project, change.base)),
        }

    def _end(self, repo: str, branch: str, sha: str) -> dict[str, Any]:
        return {"label": branch, "ref": branch, "sha": sha, "repo_id": 1, "repo": self._home(repo)}


def _titled(title: str) -> tuple[str, bool]:
    return (title[4:].strip(), True) if title.lower().startswith("wip:") else (title, False)


def note(number: int, author: str, body: str, at: str = AT) -> dict[str, Any]:
    return {"id": number, "user": {"login": author}, "created_at": at, "updated_at": at, "body": body}


def review(number: int, author: str, state: str, body: str = "") -> dict[str, Any]:
    return {
        "id": number, "user": {"login": author}, "state": state, "body": body, "commit_id": "2" * 40, "submitted_at": AT,
    }  # fmt: skip
