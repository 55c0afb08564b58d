"""Hold responses against what the OpenAPI document declares for their operation."""

import copy
import re
from functools import cache
from typing import Any

import httpx
import jsonschema

from tests.architecture import openapi_rules

Json = dict[str, Any]
_NO_BODY = (204, 304)


def violations(response: httpx.Response) -> list[str]:
    """Return what a response has that its operation does not declare, with the place in its body."""
    operation = _operation(response.request.method, response.request.url.path)
    if operation is None:  # no such route
        return [] if response.status_code in (404, 405) else ["no operation has this path"]
    status = str(response.status_code)
    declared = operation["responses"].get(status) or operation["responses"].get(f"{status[0]}XX")
    if declared is None:
        return [f"the status {status} is not declared"]
    if response.status_code in _NO_BODY:
        return []
    content_type = response.headers["content-type"].partition(";")[0]
    if content_type not in declared["content"]:
        return [f"the content type {content_type} is not declared for {status}"]
    if "json" not in content_type or "ndjson" in content_type:
        return []
    found = _validator(declared["content"][content_type]["schema"]["$ref"]).iter_errors(response.json())
    return [f"{error.json_path}: {error.message}" for error in found]


def _operation(method: str, path: str) -> Json | None:
    for template, methods in _templates():
        if template.fullmatch(path) and method.lower() in methods:
            operation: Json = methods[method.lower()]
            return operation
    return None


@cache
def _document() -> Json:
    """Return the document, with objects that have no other properties than those that they declare."""
    document = copy.deepcopy(openapi_rules.document())
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return document


@cache
def _templates() -> list[tuple[re.Pattern[str], Json]]:
    """Return the paths as patterns, in the order in which they match: words before parameters."""
    paths: Json = _document()["paths"]
    in_order = sorted(paths, key=lambda path: [part.startswith("{") for part in path.split("/")])
    one_segment = [re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) for path in in_order]
    many_segments = [pattern.replace("[^/]+", ".+") for pattern in one_segment]
    patterns = [*zip(one_segment, in_order, strict=True), *zip(many_segments, in_order, strict=True)]
    return [(re.compile(pattern), paths[path]) for pattern, path in patterns]


@cache
def _validator(reference: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": reference, "components": _document()["components"]})
