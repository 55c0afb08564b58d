"""Bodies of requests on keys, and their responses. Sessions, agents and scratch stores have keys alike.

Functions that take `opened` open the state store themselves: for one transaction, which has committed when
they return.
"""

from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

from fastapi import Path
from starlette.responses import Response

from services.gateway import etag, responses
from services.gateway.api_model import ApiModel, example
from services.gateway.responses import JsonResponse
from shared.conversation.state.protocol import StateStore
from shared.conversation.state.types import KeyEntry, time_to_version, version_to_time
from shared.conversation.values import json_codec
from shared.foundation import errors
from shared.foundation.versions import Expected

Key = Annotated[str, Path(examples=["plan"])]


class ValueBody(ApiModel):
    """A value: a boolean, a number, a text, or an object with its type."""

    model_config = example({"value": "three letters, then the garden"})

    value: Any


class KeyResponse(ApiModel):
    """A key with its value and the value's type: bool, int, float, str or obj.

    The version is its entity tag.
    """

    key: str
    value: Any
    type: str
    version: int
    updated_at: str


class DeletedKeyResponse(ApiModel):
    """Whether there was a key to delete."""

    key: str
    deleted: bool


Opened = AbstractAsyncContextManager[StateStore]


async def list_keys(opened: Opened, limit: int, cursor: str | None) -> JsonResponse:
    """Return a page of keys. Raise errors.Invalid for a cursor that no list has returned."""
    async with opened as store:
        return await page_of_keys(store, limit, cursor)


async def set_key(opened: Opened, key: str, body: ValueBody, expected: Expected | None) -> Response:
    """Write a key and return it, if its version is an expected one.

    Raise errors.Invalid for a value that can't be stored, and errors.PreconditionFailed.
    """
    value = json_codec.decode(body.value)
    async with opened as store:
        entry = await store.set_key(key, value, expected=expected)
    return etag.versioned_response(entry.to_json())


async def get_key(opened: Opened, key: str, known_version: str | None) -> Response:
    """Return a key, or 304 if the reader has its version. Raise errors.NotFound if there is none."""
    async with opened as store:
        entry = await store.get_key(key)
    return key_response(entry, key, known_version)


async def delete_key(opened: Opened, key: str, expected: Expected | None) -> JsonResponse:
    """Delete a key, and return whether there was one.

    Raise errors.PreconditionFailed if its version is no expected one.
    """
    async with opened as store:
        is_deleted = await store.delete_key(key, expected=expected)
    return JsonResponse({"key": key, "deleted": is_deleted})


async def page_of_keys(store: StateStore, limit: int, cursor: str | None) -> JsonResponse:
    """Return a page of a store's keys. Raise errors.Invalid for a cursor that no list has returned."""
    cursor_key = responses.decode_cursor(cursor)
    after_version = 0 if cursor_key is None else time_to_version(cursor_key[0])
    entries = await store.list_keys(limit + 1, after_version)
    return responses.page_response(
        entries, limit, KeyEntry.to_json, lambda entry: (version_to_time(entry.version), "key")
    )


def key_response(entry: KeyEntry | None, key: str, known_version: str | None) -> Response:
    """Return the entry of a key, or 304 if the reader has it. Raise errors.NotFound if there is none."""
    if entry is None:
        raise errors.NotFound(f"key not found: {key}")
    return etag.versioned_response(entry.to_json(), known_version)
