"""The reader of API descriptions can fail: a check that cannot is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.forges.fakes.github import API
from tests.forges.fakes.gitlab_api import SPEC
from tests.forges.fakes.openapi import load, written

SMALL = written(
    {"Thing": {"id": "int", "name": "str?", "kind": "big|small", "-parts": "[Part]"}, "Part": {"n": "int"}},
    {"GET /things/{id}": {"query": "page", "200": "Thing"}, "POST /things": {"body": {"name": "str"}, "201": "Thing"}},
)


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({"id": 1, "name": None, "kind": "big"}, []),
        ({"id": 1, "name": "n", "kind": "big", "parts": [{"n": 1}]}, []),
        ({"id": "1", "name": None, "kind": "big"}, ["x.id: '1' is no integer"]),
        ({"id": True, "name": None, "kind": "big"}, ["x.id: True is no integer"]),
        ({"name": None, "kind": "big"}, ["x: id is missing"]),
        ({"id": 1, "name": None, "kind": "huge"}, ["x.kind: 'huge' is none of ['big', 'small']"]),
        ({"id": 1, "name": None, "kind": "big", "more": 1}, ["x: there is no field 'more'"]),
        ({"id": 1, "name": None, "kind": "big", "parts": [{"n": "1"}]}, ["x.parts[0].n: '1' is no integer"]),
    ],
)
def test_a_wrong_answer_is_named(value: object, problems: list[str]) -> None:
    assert SMALL.check({"$ref": "#/components/schemas/Thing"}, value, "x") == problems


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "count"),
    [
        ("GET", "/things/1", {"page": "1"}, None, 0),
        ("GET", "/things/1", {"pages": "1"}, None, 1),
        ("GET", "/other", {}, None, 1),
        ("DELETE", "/things/1", {}, None, 1),
        ("POST", "/things", {}, {"name": "n"}, 0),
        ("POST", "/things", {}, {"title": "n"}, 2),
        ("GET", "/things/1", {}, {"name": "n"}, 1),
    ],
)
def test_a_request_that_the_service_does_not_know_is_named(
    method: str, path: str, query: dict[str, str], body: object, count: int
) -> None:
    assert len(SMALL.request(method, path, query=query, body=body)) == count


def test_what_is_required_is_filled_in() -> None:
    assert SMALL.fill({"$ref": "#/components/schemas/Thing"}, {"id": 7}) == {"id": 7, "name": None, "kind": "big"}


def test_a_field_that_gitlab_does_not_have_is_a_problem() -> None:
    asked = SPEC.request("PUT", "/projects/a%2Fb/merge_requests/1/merge", query={}, body={"method": "merge"})
    assert asked == ["PUT /projects/a%2Fb/merge_requests/1/merge: body: there is no field 'method'"]


@pytest.mark.github_api
@pytest.mark.skipif(not API, reason="BEADMILL_TEST_GITHUB_API names no file: GitHub's description is not here")
def test_githubs_own_description_is_read() -> None:
    spec, pulls = load(Path(API)), "/repos/o/r/pulls"
    draft = {"title": "t", "head": "o:b", "base": "main", "draft": True}
    assert spec.request("POST", pulls, query={}, body=draft) == []
    assert spec.request("POST", pulls, query={}, body={**draft, "draft": "yes"}) == [
        "POST /repos/o/r/pulls: body.draft: 'yes' is no boolean"
    ]
    schema = spec.answer_schema("GET", f"{pulls}/1", 200)
    assert schema is not None
    assert spec.check(schema, spec.fill(schema, {"number": "1"}), "x") == ["x.number: '1' is no integer"]
