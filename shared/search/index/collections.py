"""Create, drop, count and alias Qdrant collections."""

from typing import Any

from shared.infra.qdrant import Qdrant
from shared.search.index.points import BULK_TIMEOUT_SECONDS, DENSE, KEYWORDS

_KEYWORD_FIELDS = (
    *("agent_id", "user_id", "record_id", "session_id", "namespace_prefixes", "category_prefixes"),
    *("tags", "metadata", "key", "flow"),
)
_TIME_FIELDS = ("created_at", "occurred_at", "expires_at", "written_at", "valid_from", "valid_until")
_PAYLOAD_INDEXES: dict[str, str | dict[str, Any]] = {
    "tenant": {"type": "keyword", "is_tenant": True},
    **dict.fromkeys(_KEYWORD_FIELDS, "keyword"),
    **dict.fromkeys(_TIME_FIELDS, "datetime"),
    **dict.fromkeys(("archived", "evidence"), "bool"),
}


async def count(qdrant: Qdrant, collection: str) -> int:
    """Return the number of points in a collection."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        body = {"exact": True}
        return int((await qdrant.call("POST", f"collections/{collection}/points/count", body))["count"])


async def create_collection(qdrant: Qdrant, collection: str, dimension: int | None) -> bool:
    """Create the collection of a generation with its payload indexes; return False if it exists already."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        if await _exists(qdrant, collection):
            return False
        if not await _create_if_missing(qdrant, collection, dimension):
            return False
        for name, schema in _PAYLOAD_INDEXES.items():
            body = {"field_name": name, "field_schema": schema}
            await qdrant.call("PUT", f"collections/{collection}/index?wait=true", body)
    return True


async def _create_if_missing(qdrant: Qdrant, collection: str, dimension: int | None) -> bool:
    """Create a collection; return False if another process has created it in the meantime."""
    from qdrant_client import models
    from qdrant_client.http.exceptions import UnexpectedResponse

    dense = {DENSE: models.VectorParams(size=dimension, distance=models.Distance.COSINE)} if dimension else {}
    keywords = {KEYWORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)}
    try:
        return await qdrant.admin.create_collection(collection, dense, sparse_vectors_config=keywords)
    except UnexpectedResponse:
        if await _exists(qdrant, collection):
            return False
        raise


async def list_names(qdrant: Qdrant) -> set[str]:
    """Return the names of all collections."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        return {item["name"] for item in (await qdrant.call("GET", "collections"))["collections"]}


async def exists(qdrant: Qdrant, collection: str) -> bool:
    """Tell whether a collection exists."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        return await _exists(qdrant, collection)


async def _exists(qdrant: Qdrant, collection: str) -> bool:
    return bool((await qdrant.call("GET", f"collections/{collection}/exists"))["exists"])


async def drop_collection(qdrant: Qdrant, collection: str) -> None:
    """Delete a collection."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        await qdrant.admin.delete_collection(collection)


async def set_aliases(qdrant: Qdrant, collections: dict[str, str]) -> None:
    """Point aliases at collections, in one step, so that readers of an alias always find a collection.

    `collections` has the collection of each alias.
    """
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        aliases = (await qdrant.call("GET", "aliases"))["aliases"]
        existing = {item["alias_name"]: item["collection_name"] for item in aliases}
        changes: list[dict[str, Any]] = []
        for alias, collection in collections.items():
            if existing.get(alias) == collection:
                continue
            if alias in existing:
                changes.append({"delete_alias": {"alias_name": alias}})
            changes.append({"create_alias": {"alias_name": alias, "collection_name": collection}})
        if changes:
            await qdrant.call("POST", "collections/aliases", {"actions": changes})
