"""The schemas of tools, in the forms that model providers and MCP clients read.

Every byte of them is sent with each request to a model, so they hold no titles, and no default that the
description does not need. In the strict form of OpenAI every property is required and may be null instead;
nulls are taken as arguments that were not given.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from services.gateway.tools.tool import Tool, ToolArguments
from shared.foundation import errors

JsonObject = dict[str, Any]
DEFAULT_STYLE = "openai"
# The bounds of a text are so wide that no model meets them, and an error names them.
_LEFT_OUT = frozenset({"title", "default", "minLength", "maxLength"})
_IN_STRICT = frozenset({"type", "description", "enum", "items", "properties", "required"})


def in_style(tool: Tool, style: str) -> JsonObject:
    """Return the schema of a tool in a style. Raise errors.Invalid for an unknown style."""
    if style not in _STYLES:
        raise errors.Invalid("style", f"must be one of {', '.join(_STYLES)}")
    return _STYLES[style](tool)


def _openai_chat(tool: Tool) -> JsonObject:
    return {"type": "function", "function": _openai_function(tool)}


def _openai_responses(tool: Tool) -> JsonObject:
    return {"type": "function", **_openai_function(tool)}


def _openai_function(tool: Tool) -> JsonObject:
    parameters = _strict(arguments_schema(tool.arguments))
    return {"name": tool.name, "description": tool.description, "parameters": parameters, "strict": True}


def _anthropic(tool: Tool) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": arguments_schema(tool.arguments),
    }


def _mcp(tool: Tool) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": arguments_schema(tool.arguments),
        "annotations": tool.effect.hints(),
    }


_STYLES: Mapping[str, Callable[[Tool], JsonObject]] = {
    "openai": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "mcp": _mcp,
}


@cache
def arguments_schema(arguments: type[ToolArguments]) -> JsonObject:
    """Return the JSON Schema of arguments. An optional one may be left out, so null is none of its types."""
    schema = arguments.model_json_schema()
    properties = {name: _plain(value) for name, value in schema.get("properties", {}).items()}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


def _plain(schema: JsonObject) -> JsonObject:
    """Return the schema of one property in few words."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if choices:
        merged = choices[0] if len(choices) == 1 else {"type": [choice["type"] for choice in choices]}
        schema = merged | {name: value for name, value in schema.items() if name != "anyOf"}
    kept = {name: value for name, value in schema.items() if name not in _LEFT_OUT}
    return kept | ({"items": _plain(kept["items"])} if "items" in kept else {})


def _strict(schema: JsonObject) -> JsonObject:
    required = set(schema.get("required", ()))
    properties = {
        name: _strict_property(value, optional=name not in required)
        for name, value in schema["properties"].items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _strict_property(schema: JsonObject, *, optional: bool) -> JsonObject:
    kept = {name: value for name, value in schema.items() if name in _IN_STRICT}
    if not optional:
        return kept
    types = kept["type"] if isinstance(kept["type"], list) else [kept["type"]]
    nullable = kept | {"type": [*types, "null"]}
    return nullable | ({"enum": [*kept["enum"], None]} if "enum" in kept else {})
