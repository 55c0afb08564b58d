"""The OpenAPI document, from which clients in other languages are generated.

An operation id is the name of the route's function, so it stays the same when a path changes. What every
operation has in common is added here: the problems that it may answer with, the 202 of a write that was to
wait and that of an erasure which goes on, and the 304 of what the caller has already.
"""

import json
import re
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from services.gateway.batch import Operation
from services.gateway.response_models import Page, Problem

_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_PROBLEM_TYPE = {"application/problem+json": {"schema": _PROBLEM}}
_RECEIPT = {"application/json": {"schema": {"$ref": "#/components/schemas/ErasureReceipt"}}}
_PAGE = re.compile(r"\bPage_([A-Za-z]+)_")
# Bodies of batches: each item is read by itself, so the field is no list of the model.
_BATCHES = {
    ("BatchBody", "memories"): "MemoryBody",
    ("TurnsBody", "turns"): "TurnBody",
    ("OperationsBody", "operations"): "Operation",
}
_WITHOUT_KEY = ("/healthz", "/readyz", "/metrics")
_TAGS = {
    "memories": "Long-term memories.",
    "business context": "What a tenant's agents should know about its business.",
    "playbooks": "How flows went before, by tool calls and user queries.",
    "knowledge graph": "Entities, what connects them and when, and which of them a message is about.",
    "patterns": "What tenants that agree to share have in common.",
    "documents": "Files of the tenant, whose text is searched on request.",
    "pinned texts": "Texts that stand in every context.",
    "preferences": "Rules of users that set a slot or change a template, and which of them apply.",
    "proposals": "What waits until somebody decides whether it is stored.",
    "skills": "How agents do something, in Markdown, with files: SKILL.md folders.",
    "working memory": "Short-lived entries that sessions share.",
    "sessions": "Sessions with their turns, and the contexts of model calls.",
    "session state": "Keys, transcript, collections and files of a session.",
    "scratchpad": "Snippets of a session, and their promotion.",
    "observations": "What was observed in a session.",
    "agents": "Profiles of agents, with their keys, texts and files.",
    "scratch stores": "Keys and collections that belong to no session.",
    "feedback": "Reports of what went well or wrong.",
    "directives": "The instructions that models get.",
    "dreams": "Runs that consolidate the memory of a scope.",
    "spend": "What models cost, prices and budgets.",
    "users": "Erasure of whole users, and its receipts.",
    "transfer": "Export and import of a scope.",
    "batch": "Several requests in one.",
    "tools": "What agents' models can call, with its schemas.",
    "operations": "Health, metrics and pending work.",
}


def operation_id(route: APIRoute) -> str:
    """Return the id of an operation: the name of its function."""
    return route.name


def tags() -> list[dict[str, str]]:
    """Return the tags of the document with their descriptions."""
    return [{"name": name, "description": description} for name, description in _TAGS.items()]


def install(app: FastAPI) -> None:
    """Complete the document that the framework makes of the routes."""
    make_document = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _with_named_pages(_completed(make_document()))
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs", {}) | {"Problem": problem, "Operation": Operation.model_json_schema()}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if path not in _WITHOUT_KEY:
                _complete_responses(method, operation, schemas)
    for (name, field), item in _BATCHES.items():
        schemas[name]["properties"][field]["items"] = {"$ref": f"#/components/schemas/{item}"}
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for schema in schemas.values():
        for example in schema.get("examples", ()):
            _restore_nulls(example, schema, schemas)
    return document


def _complete_responses(method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    responses = operation["responses"]
    parameters = {parameter["name"] for parameter in operation.get("parameters", ())}
    responses.pop("422", None)
    responses |= {
        "4XX": {"description": "The request is refused.", "content": _PROBLEM_TYPE},
        "5XX": {"description": "The gateway or a database fails.", "content": _PROBLEM_TYPE},
    }
    if "wait" in parameters:
        responses["202"] = _with_pending(responses, schemas)
    if method == "get" and "if-none-match" in parameters:
        responses["304"] = {"description": "The caller has this version."}
    if method != "get" and responses.get("200", {}).get("content") == _RECEIPT:
        responses["202"] = {"description": "So many rows that they go later.", "content": _RECEIPT}


def _restore_nulls(example: Any, schema: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Put the nulls back into an example that the framework has left out of it."""
    choices = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    for part in (schema, *(choices if len(choices) == 1 else ())):
        named = schemas[part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        if isinstance(example, list) and "items" in named:
            for item in example:
                _restore_nulls(item, named["items"], schemas)
        if isinstance(example, dict) and "properties" in named:
            for name in named.get("required", ()):
                if _may_be_null(named["properties"][name]):
                    example.setdefault(name, None)
            for name, value in example.items():
                _restore_nulls(value, named["properties"].get(name, {}), schemas)


def _may_be_null(schema: dict[str, Any]) -> bool:
    return any(part.get("type") == "null" for part in schema.get("anyOf", ()))


def _with_named_pages(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with pages of memories as `MemoryPage`, not as the framework's `Page_Memory_`."""
    text = _PAGE.sub(lambda match: f"{match[1].removesuffix('Response')}Page", json.dumps(document))
    renamed: dict[str, Any] = json.loads(text)
    for name, schema in renamed["components"]["schemas"].items():
        if name.endswith("Page"):
            schema |= {"title": name, "description": Page.__doc__}
    return renamed


def _with_pending(responses: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a write that search doesn't find in time: the usual one, and `pending`."""
    usual = next(responses[status] for status in ("201", "200") if status in responses)
    name = usual["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    pending = {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "description": "How many jobs are left, by stage.",
    }
    schema = {key: value for key, value in schemas[name].items() if key != "examples"}
    schemas[f"Pending{name}"] = schema | {
        "title": f"Pending{name}",
        "properties": schema["properties"] | {"pending": pending},
        "required": [*schema.get("required", ()), "pending"],
    }
    return {
        "description": "Stored, but search does not find it in every way yet.",
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/Pending{name}"}}},
    }
