"""Bodies of requests on keys, and their responses. Sessions, agents and scratch stores have keys alike.

Functions that take `opened` open the state store themselves: for one transaction, which has committed when
they return.
"""

from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

from fastapi import Path

from services.gateway import responses
from services.gateway.api_model import ApiModel, example
from services.gateway.responses import JsonResponse
from shared.conversation.state.protocol import StateStore
from shared.conversation.state.types import KeyEntry, time_to_version, version_to_time
from shared.conversation.values import json_codec
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


Opened = AbstractAsyncContextManager[StateStore]


async def list_keys(opened: Opened, limit: int, cursor: str | None) -> JsonResponse:
    """Return a page of keys. Raise errors.Invalid for a cursor that no list has returned."""
    async with opened as store:
        return await page_of_keys(store, limit, cursor)


async def set_key(opened: Opened, key: str, body: ValueBody) -> JsonResponse:
    """Write a key and return it. Raise errors.Invalid for a value that can't be stored."""
    value = json_codec.decode(body.value)
    async with opened as store:
        entry = await store.set_key(key, value)
    return JsonResponse(entry.to_json())


async def get_key(opened: Opened, key: str) -> JsonResponse:
    """Return a key. Raise errors.NotFound if there is none."""
    async with opened as store:
        entry = await store.get_key(key)
    return JsonResponse(require_key(entry, key).to_json())


async def delete_key(opened: Opened, key: str) -> JsonResponse:
    """Delete a key, and return whether there was one."""
    async with opened as store:
        is_deleted = await store.delete_key(key)
    return JsonResponse({"key": key, "deleted": is_deleted})


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
