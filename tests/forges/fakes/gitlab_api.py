"""What of GitLab's REST API the adapter uses, kept by hand from its documentation: no package carries a description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.forges.fakes.openapi import written

SHAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "User": {"id": "int", "username": "str", "name": "str", "state": "str", "-web_url": "str"},
    "Level": {"access_level": "int", "notification_level": "int"},
    "Permissions": {"project_access": "Level?", "group_access": "Level?"},
    "Project": {
        "id": "int",
        "name": "str",
        "path_with_namespace": "str",
        "default_branch": "str?",
        "web_url": "str",
        "-permissions": "Permissions",
        "-merge_method": "merge|rebase_merge|ff",
        "-squash_option": "never|always|default_on|default_off",
        "-merge_trains_enabled": "bool",
        "-only_allow_merge_if_pipeline_succeeds": "bool",
    },
    "Commit": {"id": "str", "short_id": "str", "title": "str", "-message": "str", "-parent_ids": "[str]"},
    "Branch": {"name": "str", "merged": "bool", "protected": "bool", "commit": "Commit", "-can_push": "bool"},
    "Compare": {
        "commit": "Commit?",
        "commits": "[Commit]",
        "diffs": "[any]",
        "compare_timeout": "bool",
        "-compare_same_ref": "bool",
    },
    "MergeRequest": {
        "id": "int",
        "iid": "int",
        "project_id": "int",
        "title": "str",
        "description": "str?",
        "state": "opened|closed|merged|locked",
        "created_at": "str",
        "updated_at": "str",
        "source_branch": "str",
        "target_branch": "str",
        "source_project_id": "int",
        "target_project_id": "int",
        "draft": "bool",
        "work_in_progress": "bool",
        "merge_status": "unchecked|checking|can_be_merged|cannot_be_merged|cannot_be_merged_recheck",
        "-detailed_merge_status": "str",
        "-has_conflicts": "bool",
        "merge_when_pipeline_succeeds": "bool",
        "sha": "str?",
        "merge_commit_sha": "str?",
        "squash_commit_sha": "str?",
        "-merged_at": "str?",
        "web_url": "str",
        "squash": "bool",
        "-should_remove_source_branch": "bool?",
    },
    "Status": {
        "id": "int",
        "sha": "str",
        "ref": "str?",
        "status": "created|waiting_for_resource|preparing|pending|running|success|failed|canceled|skipped|manual|scheduled",
        "name": "str",
        "target_url": "str?",
        "allow_failure": "bool",
    },
    "Approver": {"user": "User", "-approved_at": "str"},
    "Approvals": {
        "-user_has_approved": "bool",
        "-user_can_approve": "bool",
        "approved": "bool",
        "approved_by": "[Approver]",
    },
    "Reviewer": {"user": "User", "state": "str", "created_at": "str"},
    "Position": {
        "-new_path": "str?",
        "-old_path": "str?",
        "-new_line": "int?",
        "-old_line": "int?",
        "-position_type": "str",
    },
    "Note": {
        "id": "int",
        "type": "str?",
        "body": "str",
        "author": "User",
        "created_at": "str",
        "updated_at": "str",
        "system": "bool",
        "noteable_iid": "int",
        "-position": "Position?",
    },
    "Train": {"id": "int", "target_branch": "str", "status": "str"},
    "Said": {"-message": "any", "-error": "str"},
}
REFUSED = {"401": "Said", "403": "Said", "404": "Said"}
MR = "/projects/{id}/merge_requests"
OPERATIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "GET /user": {"200": "User", **REFUSED},
    "GET /projects/{id}": {"query": "statistics license", "200": "Project", **REFUSED},
    "GET /projects/{id}/repository/branches/{branch}": {"200": "Branch", **REFUSED},
    "GET /projects/{id}/repository/compare": {"query": "from to from_project_id straight unidiff", "200": "Compare", **REFUSED},
    "GET /projects/{id}/repository/commits/{sha}/statuses": {
        "query": "ref stage name all page per_page", "200": "[Status]", **REFUSED,
    },
    f"GET {MR}": {
        "query": "state order_by sort source_branch target_branch source_project_id iids page per_page author_id wip",
        "200": "[MergeRequest]", **REFUSED,
    },
    f"POST {MR}": {
        "body": {
            "source_branch": "str", "target_branch": "str", "title": "str", "-description": "str",
            "-target_project_id": "int", "-remove_source_branch": "bool", "-squash": "bool",
        },
        "201": "MergeRequest", "409": "Said", "422": "Said", **REFUSED,
    },
    f"GET {MR}/{{iid}}": {"query": "include_rebase_in_progress", "200": "MergeRequest", **REFUSED},
    f"PUT {MR}/{{iid}}": {
        "body": {
            "-title": "str", "-description": "str", "-target_branch": "str", "-state_event": "close|reopen",
            "-squash": "bool", "-remove_source_branch": "bool",
        },
        "200": "MergeRequest", "409": "Said", "422": "Said", **REFUSED,
    },
    f"PUT {MR}/{{iid}}/merge": {
        "body": {
            "-sha": "str", "-squash": "bool", "-should_remove_source_branch": "bool", "-merge_commit_message": "str",
            "-squash_commit_message": "str", "-auto_merge": "bool",
        },
        "200": "MergeRequest", "405": "Said", "406": "Said", "409": "Said", "422": "Said", **REFUSED,
    },
    f"GET {MR}/{{iid}}/approvals": {"200": "Approvals", **REFUSED},
    f"GET {MR}/{{iid}}/reviewers": {"200": "[Reviewer]", **REFUSED},
    f"GET {MR}/{{iid}}/notes": {"query": "sort order_by page per_page", "200": "[Note]", **REFUSED},
    f"POST {MR}/{{iid}}/notes": {"body": {"body": "str"}, "201": "Note", **REFUSED},
    "POST /projects/{id}/merge_trains/merge_requests/{iid}": {
        "body": {"-sha": "str", "-squash": "bool", "-auto_merge": "bool"}, "201": "[Train]", "409": "Said", **REFUSED,
    },
}  # fmt: skip
SPEC: Final = written(SHAPES, OPERATIONS)
