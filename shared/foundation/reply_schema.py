"""Build the JSON schemas of models' replies.

Only the parts of JSON Schema that every implementation knows are used: an object at the top, all of whose
fields are required and which has no others.
"""

from collections.abc import Mapping
from typing import Any

JsonSchema = dict[str, Any]

TEXT: Mapping[str, Any] = {"type": "string"}
TEXT_OR_NULL: Mapping[str, Any] = {"type": ["string", "null"]}
NUMBER: Mapping[str, Any] = {"type": "number"}
INTEGER: Mapping[str, Any] = {"type": "integer"}


def object_of(**fields: Mapping[str, Any]) -> JsonSchema:
    """Return the schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": {name: dict(field) for name, field in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }


def array_of(item: Mapping[str, Any]) -> JsonSchema:
    """Return the schema of an array of such items."""
    return {"type": "array", "items": dict(item)}


def one_of(*values: str) -> JsonSchema:
    """Return the schema of a text that is one of these values."""
    return {"type": "string", "enum": list(values)}
