"""The OpenAPI document is clean enough to generate a client from it; its examples are what it says."""

import copy
import json
import re
from typing import Any

import jsonschema
import pytest

from tests.architecture import openapi_rules


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_rules.document()


@pytest.fixture(scope="module")
def part(document: dict[str, Any]) -> dict[str, Any]:
    """The document of a few routes, with the schemas that they need: the whole takes seconds to check."""
    paths = {path: document["paths"][path] for path in ("/v1/memories", "/v1/memories/{memory_id}")}
    schemas = document["components"]["schemas"]
    needed: set[str] = set()
    waiting = _named_schemas(paths)
    while waiting:
        needed.add(name := waiting.pop())
        waiting |= _named_schemas(schemas[name]) - needed
    components = document["components"] | {"schemas": {name: schemas[name] for name in sorted(needed)}}
    return document | {"paths": paths, "components": components}


def _named_schemas(content: Any) -> set[str]:
    return set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(content)))


def test_the_document_breaks_no_rule(document: dict[str, Any]) -> None:
    assert list(openapi_rules.violations(document)) == []


def test_each_example_of_a_body_fits_its_schema(document: dict[str, Any]) -> None:
    checked = 0
    for name, schema in document["components"]["schemas"].items():
        for example in schema.get("examples", ()):
            validator = jsonschema.Draft202012Validator(
                {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
            )
            assert [error.message for error in validator.iter_errors(example)] == [], name
            checked += 1
    assert checked >= 20


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda operation: operation.update(operationId="get_memory"), "another route has"),
        (lambda operation: operation.update(operationId="saveMemory"), "is not words"),
        (lambda operation: operation.pop("description"), "docstring"),
        (lambda operation: operation.update(tags=["other"]), "tag"),
        (lambda operation: operation["responses"].pop("4XX"), "problems"),
        (lambda operation: _schema_of(operation["responses"]["201"]).clear(), "name the model of its 201"),
        (lambda operation: _schema_of(operation["requestBody"]).clear(), "name the model of its body"),
        (lambda operation: operation["parameters"][0].update(schema={}), "a type"),
        (lambda operation: operation["responses"]["201"].pop("description"), "description"),
    ],
)
def test_each_rule_notices_what_breaks_it(part: dict[str, Any], change: Any, rule: str) -> None:
    assert list(openapi_rules.violations(part)) == []
    changed = copy.deepcopy(part)
    change(changed["paths"]["/v1/memories"]["post"])
    assert any(rule in violation for violation in openapi_rules.violations(changed))


def _schema_of(content: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = content["content"]["application/json"]["schema"]
    return schema
