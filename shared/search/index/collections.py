"""Create, drop, count and alias Qdrant collections."""

from typing import Any

from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from shared.infra.qdrant import Qdrant
from shared.search.index.points import BULK_TIMEOUT_SECONDS, DENSE, KEYWORDS

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
    "written_at": models.PayloadSchemaType.DATETIME,
    "archived": models.PayloadSchemaType.BOOL,
}


async def count(qdrant: Qdrant, collection: str) -> int:
    """Return the number of points in a collection."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        return (await qdrant.admin.count(collection, exact=True)).count


async def create_collection(qdrant: Qdrant, collection: str, dimension: int | None) -> bool:
    """Create the collection of a generation with its payload indexes; return False if it exists already."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        if await qdrant.admin.collection_exists(collection):
            return False
        if not await _create_if_missing(qdrant, collection, dimension):
            return False
        for name, schema in PAYLOAD_INDEXES.items():
            await qdrant.admin.create_payload_index(collection, name, schema, wait=True)
    return True


async def _create_if_missing(qdrant: Qdrant, collection: str, dimension: int | None) -> bool:
    """Create a collection; return False if another process has created it in the meantime."""
    dense = {DENSE: models.VectorParams(size=dimension, distance=models.Distance.COSINE)} if dimension else {}
    keywords = {KEYWORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)}
    try:
        return await qdrant.admin.create_collection(collection, dense, sparse_vectors_config=keywords)
    except UnexpectedResponse:
        if await qdrant.admin.collection_exists(collection):
            return False
        raise


async def exists(qdrant: Qdrant, collection: str) -> bool:
    """Tell whether a collection exists."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        return await qdrant.admin.collection_exists(collection)


async def drop_collection(qdrant: Qdrant, collection: str) -> None:
    """Delete a collection."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        await qdrant.admin.delete_collection(collection)


async def set_alias(qdrant: Qdrant, alias: str, collection: str) -> None:
    """Point an alias at a collection, in one step, so that readers of the alias always find a collection."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        collections = {a.alias_name: a.collection_name for a in (await qdrant.admin.get_aliases()).aliases}
        if collections.get(alias) == collection:
            return
        changes: list[Any] = []
        if alias in collections:
            changes.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
        create = models.CreateAlias(collection_name=collection, alias_name=alias)
        changes.append(models.CreateAliasOperation(create_alias=create))
        await qdrant.admin.update_collection_aliases(changes)
