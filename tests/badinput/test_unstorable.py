"""Errors: NUL and lone surrogates in every string of every body, in every path and query parameter.

Generated from the OpenAPI document: each place where a string can stand is tried, also as the key
of an object, so a new field is covered from its first day.
"""

import copy
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.badinput import problem
from tests.badinput.conftest import Door

BAD = {"NUL": "a\x00b", "lone surrogate": "a\ud800b"}
Step = str | int


async def test_no_string_of_any_body_may_hold_what_a_store_cannot(door: Door) -> None:
    document = (await door.client.get("/openapi.json")).json()
    tried = 0
    async with door.unchanged():
        for method, path, schema in _bodies(document):
            for body in _spoilt(document, schema):
                answer = await door.send(method, _filled(path), body)
                assert answer.status_code == 422, f"{method} {path} {body!r}: {answer.text}"
                if path.endswith("/batch") and "results" in answer.json():
                    assert all(one["status"] == 422 for one in answer.json()["results"])
                else:
                    problem.read(answer)
                tried += 1
    assert tried > 60


def _bodies(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, verbs in document["paths"].items():
        for method, operation in verbs.items():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                yield method.upper(), path, content["application/json"]["schema"]


_IDS = {"session_id": "talk", "key": "session/talk/k", "name": "memory-rules"}


def _filled(path: str) -> str:
    return re.sub(r"{(\w+)}", lambda found: _IDS.get(found[1], "0" * 12), path)


def _spoilt(document: dict[str, Any], schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the example body with one string spoilt, for each place and each way."""
    model = _resolved(document, schema)
    (example,) = model["examples"]
    for place in _places(document, model):
        for bad in BAD.values():
            yield _set(copy.deepcopy(example), place, bad)


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        model: dict[str, Any] = document["components"]["schemas"][name]
        return model
    return schema


def _places(document: dict[str, Any], schema: dict[str, Any]) -> Iterator[list[Step]]:
    """Yield the way to each place where a string can stand; '*' is a key of an object itself."""
    model = _resolved(document, schema)
    for option in model.get("anyOf", []):
        yield from _places(document, option)
    if model.get("type") == "string":
        yield []
    for name, inner in model.get("properties", {}).items():
        yield from ([name, *rest] for rest in _places(document, inner))
    if model.get("type") == "array":
        yield from ([0, *rest] for rest in _places(document, model["items"]))
    if model.get("type") == "object" and "properties" not in model:
        yield ["*"]
        yield ["key"]


def _set(body: Any, place: list[Step], bad: str) -> Any:
    if not place:
        return bad
    step, *rest = place
    if step == "*":
        return {bad: "value"}
    if step == 0:
        return [_set(body[0] if body else None, rest, bad)]
    body = dict(body) if isinstance(body, dict) else {}
    return body | {str(step): _set(body.get(str(step)), rest, bad)}


@pytest.mark.parametrize("bad", ["%00", "a%00b", "%ED%A0%80", "%FF", "a%0Ab"])
async def test_no_path_or_query_may_carry_it_either(door: Door, bad: str) -> None:
    document = (await door.client.get("/openapi.json")).json()
    async with door.unchanged():
        for method, path, parameter in _parameters(document):
            for url in _urls(path, parameter, bad):
                answer = await door.client.request(method.upper(), url)
                assert answer.status_code < 500, f"{method} {url}: {answer.text}"
                if "%00" in bad:
                    assert answer.status_code == 422, f"{method} {url}: {answer.text}"
                    problem.read(answer)


def _parameters(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    for path, verbs in document["paths"].items():
        for method, operation in verbs.items():
            for parameter in operation.get("parameters", []):
                if parameter["in"] in ("path", "query"):
                    yield method, path, parameter


def _urls(path: str, parameter: dict[str, str], bad: str) -> Iterator[str]:
    if parameter["in"] == "path":
        yield _filled(path.replace(f"{{{parameter['name']}}}", bad))
    else:
        yield f"{_filled(path)}?{quote(parameter['name'])}={bad}"


async def test_a_problem_never_repeats_what_was_refused(door: Door) -> None:
    answer = await door.send(
        "POST", "/v1/memories", {"content": "my secret \x00", "metadata": {"\ud800": "x"}}
    )
    assert "my secret" not in answer.text
