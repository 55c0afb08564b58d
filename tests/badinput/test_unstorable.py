"""NUL and lone surrogates are refused in every string of every body, path and query parameter.

The requests are generated from the OpenAPI document. Every position of a string is tried, including
the keys of objects, so that a new field is covered at once.
"""

import copy
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.badinput import problem
from tests.badinput.conftest import CheckedGateway

BAD = {"NUL": "a\x00b", "lone surrogate": "a\ud800b"}
Step = str | int


async def test_no_string_of_any_body_may_hold_text_that_a_database_cannot_store(
    gateway: CheckedGateway,
) -> None:
    document = (await gateway.client.get("/openapi.json")).json()
    request_count = 0
    async with gateway.unchanged():
        for method, path, schema in _json_bodies(document):
            for body in _spoilt_bodies(document, schema):
                response = await gateway.send(method, _fill_path(path), body)
                request_count += 1
                if path == _TOOL:  # the arguments are a model's, which reads the answer
                    assert response.json()["is_error"], response.text
                    assert "must not contain NUL or lone surrogates" in response.json()["content"]
                    continue
                refused = 200 if path == "/v1/batch" else 422
                assert response.status_code in {422, refused}, f"{method} {path} {body!r}: {response.text}"
                if path.endswith("/batch") and "results" in response.json():
                    assert all(result["status"] == 422 for result in response.json()["results"])
                else:
                    problem.parse_problem(response)
    assert request_count > 60


def _json_bodies(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, verbs in document["paths"].items():
        for method, operation in verbs.items():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                yield method.upper(), path, content["application/json"]["schema"]


_IDS = {"session_id": "talk", "key": "session/talk/k", "name": "memory-rules"}


_TOOL = "/v1/tools/{name}"


def _fill_path(path: str) -> str:
    if path == _TOOL:
        return "/v1/tools/memory_add"
    return re.sub(r"{(\w+)}", lambda match: _IDS.get(match[1], "0" * 12), path)


def _spoilt_bodies(document: dict[str, Any], schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the example body with one string replaced by a bad one, for each string and each bad text."""
    model = _resolve(document, schema)
    (example,) = model["examples"]
    for path in _string_paths(document, model):
        for bad in BAD.values():
            yield _replace_at(copy.deepcopy(example), path, bad)


def _resolve(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        model: dict[str, Any] = document["components"]["schemas"][name]
        return model
    return schema


def _string_paths(
    document: dict[str, Any], schema: dict[str, Any], within: tuple[str, ...] = ()
) -> Iterator[list[Step]]:
    """Yield the path to each string in a schema. A step '*' means the key of an object itself.

    A model that contains itself, as a filter does, is entered once.
    """
    if "$ref" in schema:
        if schema["$ref"] in within:
            return
        within = (*within, schema["$ref"])
    model = _resolve(document, schema)
    for option in model.get("anyOf", []):
        yield from _string_paths(document, option, within)
    if model.get("type") == "string":
        yield []
    for name, inner in model.get("properties", {}).items():
        yield from ([name, *rest] for rest in _string_paths(document, inner, within))
    if model.get("type") == "array":
        yield from ([0, *rest] for rest in _string_paths(document, model["items"], within))
    if model.get("type") == "object" and "properties" not in model:
        yield ["*"]
        yield ["key"]


def _replace_at(body: Any, path: list[Step], bad: str) -> Any:
    if not path:
        return bad
    step, *rest = path
    if step == "*":
        return {bad: "value"}
    if step == 0:
        return [_replace_at(body[0] if body else None, rest, bad)]
    body = dict(body) if isinstance(body, dict) else {}
    return body | {str(step): _replace_at(body.get(str(step)), rest, bad)}


@pytest.mark.parametrize("bad", ["%00", "a%00b", "%ED%A0%80", "%FF", "a%0Ab"])
async def test_no_path_or_query_parameter_may_hold_it(gateway: CheckedGateway, bad: str) -> None:
    document = (await gateway.client.get("/openapi.json")).json()
    async with gateway.unchanged():
        for method, path, parameter in _parameters(document):
            for url in _urls(path, parameter, bad):
                response = await gateway.client.request(method.upper(), url)
                assert response.status_code < 500, f"{method} {url}: {response.text}"
                if "%00" in bad:
                    assert response.status_code == 422, f"{method} {url}: {response.text}"
                    problem.parse_problem(response)


def _parameters(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    for path, verbs in document["paths"].items():
        for method, operation in verbs.items():
            for parameter in operation.get("parameters", []):
                if parameter["in"] in ("path", "query"):
                    yield method, path, parameter


def _urls(path: str, parameter: dict[str, str], bad: str) -> Iterator[str]:
    if parameter["in"] == "path":
        yield _fill_path(path.replace(f"{{{parameter['name']}}}", bad))
    else:
        yield f"{_fill_path(path)}?{quote(parameter['name'])}={bad}"


async def test_a_problem_never_repeats_the_refused_text(gateway: CheckedGateway) -> None:
    response = await gateway.send(
        "POST", "/v1/memories", {"content": "my secret \x00", "metadata": {"\ud800": "x"}}
    )
    assert "my secret" not in response.text
