"""What of Gitea's and Forgejo's REST API the adapter uses, kept by hand from their published descriptions: no package
carries those."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.forges.fakes.openapi import written

SHAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "User": {"id": "int", "login": "str", "full_name": "str", "-html_url": "str"},
    "Permission": {"admin": "bool", "push": "bool", "pull": "bool"},
    "Repository": {
        "id": "int",
        "name": "str",
        "full_name": "str",
        "default_branch": "str",
        "html_url": "str",
        "-permissions": "Permission",
        "-allow_merge_commits": "bool",
        "-allow_squash_merge": "bool",
        "-allow_rebase": "bool",
        "-default_merge_style": "merge|rebase|rebase-merge|squash|fast-forward-only",
        "-fork": "bool",
    },
    "PayloadCommit": {"id": "str", "message": "str", "url": "str"},
    "Branch": {"name": "str", "commit": "PayloadCommit", "protected": "bool", "user_can_push": "bool"},
    "Commit": {"sha": "str", "-url": "str"},
    "Compare": {"total_commits": "int", "commits": "[Commit]"},
    "BranchInfo": {"label": "str", "ref": "str", "sha": "str", "repo_id": "int", "repo": "Repository?"},
    "PullRequest": {
        "id": "int",
        "number": "int",
        "title": "str",
        "body": "str",
        "state": "open|closed",
        "draft": "bool",
        "html_url": "str",
        "mergeable": "bool",
        "merged": "bool",
        "merged_at": "str?",
        "merge_commit_sha": "str?",
        "head": "BranchInfo",
        "base": "BranchInfo",
        "merge_base": "str",
        "-comments": "int",
    },
    "CommitStatus": {
        "id": "int",
        "context": "str",
        "status": "pending|success|error|failure|warning",
        "target_url": "str",
    },
    "CombinedStatus": {"sha": "str", "state": "str", "total_count": "int", "statuses": "[CommitStatus]?"},
    "Review": {
        "id": "int",
        "user": "User",
        "state": "APPROVED|REQUEST_CHANGES|COMMENT|PENDING|REQUEST_REVIEW",
        "body": "str",
        "commit_id": "str",
        "submitted_at": "str",
        "stale": "bool",
        "dismissed": "bool",
        "comments_count": "int",
    },
    "ReviewComment": {
        "id": "int",
        "user": "User",
        "body": "str",
        "path": "str",
        "position": "int",
        "original_position": "int",
        "created_at": "str",
    },
    "Comment": {"id": "int", "user": "User", "body": "str", "created_at": "str", "updated_at": "str"},
    "Said": {"message": "str", "-url": "str"},
}
REFUSED = {"401": "Said", "403": "Said", "404": "Said"}
R = "/repos/{owner}/{repo}"
OPERATIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "GET /user": {"200": "User", **REFUSED},
    f"GET {R}": {"200": "Repository", **REFUSED},
    f"GET {R}/branches/{{branch}}": {"200": "Branch", **REFUSED},
    f"GET {R}/compare/{{basehead}}": {"200": "Compare", **REFUSED},
    f"GET {R}/pulls": {"query": "state sort milestone labels poster page limit base_branch", "200": "[PullRequest]", **REFUSED},
    f"POST {R}/pulls": {
        "body": {"title": "str", "head": "str", "base": "str", "-body": "str", "-labels": "[int]", "-assignees": "[str]"},
        "201": "PullRequest", "409": "Said", "422": "Said", **REFUSED,
    },
    f"GET {R}/pulls/{{index}}": {"200": "PullRequest", **REFUSED},
    f"PATCH {R}/pulls/{{index}}": {
        "body": {"-title": "str", "-body": "str", "-base": "str", "-state": "open|closed", "-unset_due_date": "bool"},
        "201": "PullRequest", "409": "Said", "412": "Said", "422": "Said", **REFUSED,
    },
    f"POST {R}/pulls/{{index}}/merge": {
        "body": {
            "Do": "merge|rebase|rebase-merge|squash|fast-forward-only|manually-merged", "-head_commit_id": "str",
            "-delete_branch_after_merge": "bool", "-MergeTitleField": "str", "-MergeMessageField": "str",
            "-merge_when_checks_succeed": "bool",
        },
        "405": "Said", "409": "Said", **REFUSED,
    },
    f"GET {R}/pulls/{{index}}/reviews": {"query": "page limit", "200": "[Review]", **REFUSED},
    f"GET {R}/pulls/{{index}}/reviews/{{id}}/comments": {"200": "[ReviewComment]", **REFUSED},
    f"GET {R}/commits/{{ref}}/status": {"query": "page limit", "200": "CombinedStatus", **REFUSED},
    f"GET {R}/issues/{{index}}/comments": {"query": "since before", "200": "[Comment]", **REFUSED},
    f"POST {R}/issues/{{index}}/comments": {"body": {"body": "str", "-updated_at": "str"}, "201": "Comment", **REFUSED},
}  # fmt: skip
SPEC: Final = written(SHAPES, OPERATIONS)
