"""Request and response bodies of collections, which sessions and scratch stores have alike."""

from typing import Annotated, Any

from fastapi import Path
from pydantic import Field, Strict
from starlette.responses import Response

from services.gateway import etag
from services.gateway.api_model import ApiModel, Count, Flag, example
from shared.conversation.state.protocol import StateStore
from shared.conversation.state.types import CollectionInfo, CollectionSnapshot
from shared.conversation.values import collection_codec
from shared.conversation.values.collection import Collection
from shared.conversation.values.vector import Vec
from shared.foundation import errors

Label = Annotated[str, Path(examples=["plans"])]


class CollectionBody(ApiModel):
    """A whole collection: a doc, block, set, list, tuple, vec or tensor."""

    model_config = example({"type": "doc", "value": {"city": "Paris", "nights": 3}})

    type: str
    value: Any
    index: Flag = False

    def collection(self) -> Collection:
        """Return the collection. Raise errors.Invalid if it breaks a rule."""
        collection = collection_codec.decode_collection(self.type, self.value)
        if self.index and not isinstance(collection, Vec):
            raise errors.Invalid("index", "can be true of a vec alone")
        return collection


class CollectionInfoResponse(ApiModel):
    """A collection without its value. The version is also its entity tag."""

    label: str
    type: str
    index: bool
    size_bytes: int
    version: int
    updated_at: str


class CollectionResponse(CollectionInfoResponse):
    """A collection with its value at the time of reading."""

    value: Any


class VectorBody(ApiModel):
    """A vector to search the most similar rows of."""

    model_config = example({"vector": [0.1, 0.9, 0.0], "limit": 5})

    vector: Annotated[list[Annotated[float, Strict()]], Field(min_length=1, max_length=65_536)]
    limit: Annotated[Count, Field(ge=1, le=100)] = 10


def info_response(info: CollectionInfo) -> Response:
    """Return a written collection without its value, with its entity tag."""
    return etag.versioned_response(info.to_json())


async def require_collection(store: StateStore, label: str) -> CollectionSnapshot:
    """Return a collection. Raise errors.NotFound if there is none."""
    snapshot = await store.get_collection(label)
    if snapshot is None:
        raise errors.NotFound(f"collection not found: {label}")
    return snapshot


def snapshot_response(snapshot: CollectionSnapshot, if_none_match: str | None) -> Response:
    """Return a collection, or 304 if the reader already has this version."""
    return etag.versioned_response(snapshot.to_json(), if_none_match)
