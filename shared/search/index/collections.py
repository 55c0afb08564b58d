"""Create, drop, count and alias Qdrant collections."""

from typing import Any

from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from shared.infra.qdrant import Qdrant
from shared.search.index.points import _BULK, DENSE, KEYWORDS

PAYLOAD_INDEXES: dict[str, models.PayloadSchemaType | models.KeywordIndexParams] = {
    "tenant": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "agent_id": models.PayloadSchemaType.KEYWORD,
    "user_id": models.PayloadSchemaType.KEYWORD,
    "record_id": models.PayloadSchemaType.KEYWORD,
    "session_id": models.PayloadSchemaType.KEYWORD,
    "namespace_prefixes": models.PayloadSchemaType.KEYWORD,
    "category_prefixes": models.PayloadSchemaType.KEYWORD,
    "tags": models.PayloadSchemaType.KEYWORD,
    "metadata": models.PayloadSchemaType.KEYWORD,
    "created_at": models.PayloadSchemaType.DATETIME,
    "occurred_at": models.PayloadSchemaType.DATETIME,
    "expires_at": models.PayloadSchemaType.DATETIME,
    "archived": models.PayloadSchemaType.BOOL,
}


async def count(qdrant: Qdrant, collection: str) -> int:
    """Count the points of a collection."""
    async with qdrant.call_guard(timeout=_BULK):
        return (await qdrant.client.count(collection, exact=True)).count


async def create_collection(qdrant: Qdrant, collection: str, dimension: int | None) -> bool:
    """Create a generation's collection with its payload indexes; tell whether it was lacking."""
    async with qdrant.call_guard(timeout=_BULK):
        if await qdrant.client.collection_exists(collection) or not await _create(
            qdrant, collection, dimension
        ):
            return False
        for name, schema in PAYLOAD_INDEXES.items():
            await qdrant.client.create_payload_index(collection, name, schema, wait=True)
    return True


async def _create(qdrant: Qdrant, collection: str, dimension: int | None) -> bool:
    """Create a collection unless another process, started at the same time, was quicker."""
    dense = {DENSE: models.VectorParams(size=dimension, distance=models.Distance.COSINE)} if dimension else {}
    keywords = {KEYWORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)}
    try:
        return await qdrant.client.create_collection(collection, dense, sparse_vectors_config=keywords)
    except UnexpectedResponse as refused:
        if await qdrant.client.collection_exists(collection):
            return False
        raise refused from None


async def exists(qdrant: Qdrant, collection: str) -> bool:
    """Tell whether a collection is there."""
    async with qdrant.call_guard(timeout=_BULK):
        return await qdrant.client.collection_exists(collection)


async def drop_collection(qdrant: Qdrant, collection: str) -> None:
    """Delete a retired generation's collection."""
    async with qdrant.call_guard(timeout=_BULK):
        await qdrant.client.delete_collection(collection)


async def set_alias(qdrant: Qdrant, alias: str, collection: str) -> None:
    """Make the alias name this collection, in one step for readers from outside."""
    async with qdrant.call_guard(timeout=_BULK):
        known = {a.alias_name: a.collection_name for a in (await qdrant.client.get_aliases()).aliases}
        if known.get(alias) == collection:
            return
        changes: list[Any] = []
        if alias in known:
            changes.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
        create = models.CreateAlias(collection_name=collection, alias_name=alias)
        changes.append(models.CreateAliasOperation(create_alias=create))
        await qdrant.client.update_collection_aliases(changes)
