"""Create, drop, count and alias Qdrant collections."""

from typing import Any

from shared.infra.qdrant import ErrorStatus, Qdrant
from shared.search.index.points import BULK_TIMEOUT_SECONDS, DENSE, KEYWORDS

_KEYWORD_FIELDS = (
    *("agent_id", "user_id", "record_id", "session_id", "namespace_prefixes", "category_prefixes"),
    *("tags", "metadata", "key", "flow"),
)
_TIME_FIELDS = ("created_at", "occurred_at", "expires_at", "written_at", "valid_from", "valid_until")


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


_PAYLOAD_INDEXES: dict[str, Any] = {
    "tenant": {"type": "keyword", "is_tenant": True},
    **dict.fromkeys(_KEYWORD_FIELDS, "keyword"),
    **dict.fromkeys(_TIME_FIELDS, "datetime"),
    "archived": "bool",
}


async def _create_if_missing(qdrant: Qdrant, collection: str, dimension: int | None) -> bool:
    """Create a collection; return False if another process has created it in the meantime."""
    dense = {DENSE: {"size": dimension, "distance": "Cosine"}} if dimension else {}
    body = {"vectors": dense, "sparse_vectors": {KEYWORDS: {"modifier": "idf"}}}
    try:
        return bool(await qdrant.call("PUT", f"collections/{collection}", body))
    except ErrorStatus:
        if await _exists(qdrant, collection):
            return False
        raise


async def exists(qdrant: Qdrant, collection: str) -> bool:
    """Tell whether a collection exists."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        return await _exists(qdrant, collection)


async def _exists(qdrant: Qdrant, collection: str) -> bool:
    return bool((await qdrant.call("GET", f"collections/{collection}/exists"))["exists"])


async def drop_collection(qdrant: Qdrant, collection: str) -> None:
    """Delete a collection."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        await qdrant.call("DELETE", f"collections/{collection}")


async def set_alias(qdrant: Qdrant, alias: str, collection: str) -> None:
    """Point an alias at a collection, in one step, so that readers of the alias always find a collection."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        aliases = (await qdrant.call("GET", "aliases"))["aliases"]
        collections = {item["alias_name"]: item["collection_name"] for item in aliases}
        if collections.get(alias) == collection:
            return
        changes: list[Any] = []
        if alias in collections:
            changes.append({"delete_alias": {"alias_name": alias}})
        changes.append({"create_alias": {"collection_name": collection, "alias_name": alias}})
        await qdrant.call("POST", "collections/aliases", {"actions": changes})
