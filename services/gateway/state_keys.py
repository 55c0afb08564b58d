"""Request and response bodies of keys, which sessions, agents and scratch stores have alike."""

from typing import Annotated, Any

from fastapi import Path

from services.gateway import responses
from services.gateway.api_model import ApiModel, example
from services.gateway.responses import JsonResponse
from shared.conversation.state.protocol import StateStore
from shared.conversation.state.types import KeyEntry, time_to_version, version_to_time
from shared.foundation import errors

Key = Annotated[str, Path(examples=["plan"])]


class ValueBody(ApiModel):
    """A value: a boolean, a number, a text, or an object with its type."""

    model_config = example({"value": "three letters, then the garden"})

    value: Any


class KeyResponse(ApiModel):
    """A key with its value and the value's type: bool, int, float, str or obj."""

    key: str
    value: Any
    type: str
    updated_at: str


async def page_of_keys(store: StateStore, limit: int, cursor: str | None) -> JsonResponse:
    """Return a page of a store's keys. Raise errors.Invalid for a cursor that no list has returned."""
    cursor_key = responses.decode_cursor(cursor)
    after_version = 0 if cursor_key is None else time_to_version(cursor_key[0])
    entries = await store.list_keys(limit + 1, after_version)
    return responses.page_response(
        entries, limit, KeyEntry.to_json, lambda entry: (version_to_time(entry.version), "key")
    )


def require_key(entry: KeyEntry | None, key: str) -> KeyEntry:
    """Return the entry of a key. Raise errors.NotFound if there is none."""
    if entry is None:
        raise errors.NotFound(f"key not found: {key}")
    return entry
