"""What the OpenAPI document must have, so that a client in another language can be generated from it.

`make lint` runs this file, and the tests of the architecture do. The document itself is checked against the
specification by openapi-spec-validator.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from openapi_spec_validator import OpenAPIV31SpecValidator

from services.gateway.app import create_app

Json = dict[str, Any]
_OPERATION_ID = re.compile(r"[a-z]+(_[a-z]+)*")
_PROBES = {"/healthz", "/readyz", "/metrics"}


def document() -> Json:
    """Return the document of the gateway."""
    return create_app().openapi()


def operations(openapi: Json) -> Iterator[tuple[str, Json]]:
    """Yield each operation under its method and path."""
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def violations(openapi: Json) -> Iterator[str]:
    """Yield what breaks a rule, in words."""
    yield from (error.message for error in OpenAPIV31SpecValidator(openapi).iter_errors())
    yield from _operation_ids(openapi)
    tags = {tag["name"] for tag in openapi["tags"]}
    for name, operation in operations(openapi):
        if not operation.get("description"):
            yield f"{name}: give its function a docstring"
        if not set(operation.get("tags", ())) <= tags or not operation.get("tags"):
            yield f"{name}: give it a tag that services/gateway/openapi.py describes"
        yield from (f"{name}: {rule}" for rule in _bodies(operation))
        yield from (f"{name}: {rule}" for rule in _parameters(operation))
        if name.split(" ")[1] not in _PROBES and not {"4XX", "5XX"} <= operation["responses"].keys():
            yield f"{name}: declare its problems"
    yield from _schemas(openapi)


def _operation_ids(openapi: Json) -> Iterator[str]:
    ids = Counter(operation["operationId"] for _, operation in operations(openapi))
    for name, operation in operations(openapi):
        operation_id = operation["operationId"]
        if ids[operation_id] > 1:
            yield f"{name}: another route has the operation id {operation_id}: rename the function"
        if not _OPERATION_ID.fullmatch(operation_id):
            yield f"{name}: the operation id {operation_id} is not words with '_' between them"


def _bodies(operation: Json) -> Iterator[str]:
    """Yield what is wrong with JSON bodies: each must be a named model."""
    body = operation.get("requestBody", {}).get("content", {})
    if "$ref" not in body.get("application/json", {"schema": {"$ref": ""}})["schema"]:
        yield "name the model of its body"
    successes = {status: response for status, response in operation["responses"].items() if status[0] == "2"}
    for status, response in successes.items():
        content = response.get("content", {})
        if not content:
            yield f"declare the content of its {status}"
        if "$ref" not in content.get("application/json", {"schema": {"$ref": ""}})["schema"]:
            yield f"name the model of its {status}: response_model=…"


def _parameters(operation: Json) -> Iterator[str]:
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        if not schema.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
            yield f"give the parameter {parameter['name']} a type"


def _schemas(openapi: Json) -> Iterator[str]:
    bodies = {
        operation["requestBody"]["content"]["application/json"]["schema"].get("$ref", "").rpartition("/")[2]
        for _, operation in operations(openapi)
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    for name, schema in openapi["components"]["schemas"].items():
        if not re.fullmatch(r"[A-Z][A-Za-z]+", name):
            yield f"schema {name}: give it a name of letters"
        if "properties" in schema and not schema.get("description"):
            yield f"schema {name}: give its class a docstring"
        if name in bodies and not schema.get("examples"):
            yield f"schema {name}: give it an example"


def main() -> None:
    """Print what breaks a rule, and fail if anything does."""
    found = list(violations(document()))
    sys.stdout.write("".join(f"openapi: {violation}\n" for violation in found))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
