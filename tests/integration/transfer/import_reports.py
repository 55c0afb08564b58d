"""Entries as tests tell them, and what the stores say of them afterwards."""

from typing import Any

import orjson
from sqlalchemy import text

from shared.foundation.scope import Scope
from shared.memory.longterm import history, save
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import MemoryDraft
from shared.memory.longterm.search import SearchOptions
from tests.integration.transfer.conftest import House

ADA = "00000000ada0"
BOB = "00000000b0b0"
THEN = "2024-05-06T07:08:09.123456Z"
LATER = "2025-05-06T07:08:09.654321Z"
FULL: dict[str, Any] = {
    "id": ADA,
    "content": "Ada prefers trains to planes.",
    "category": "user-preferences/travel",
    "tags": ["travel", "zug"],
    "metadata": {"k": "v", "subjectTime": "2024"},
    "importance": 0.1,
    "state": "failed",
    "failure_reason": "the model refused",
    "occurred_at": THEN,
    "sources": [{"session_id": "s/1", "seq": 7, "speaker": "Ada", "role": "user"}],
    "created_at": THEN,
    "updated_at": LATER,
    "last_seen_at": LATER,
    "reinforcement_count": 5,
    "agent_id": "a",
    "user_id": None,
    "superseded_by": [],
    "derived_from": [BOB],
    "archived_at": None,
    "archive_reason": None,
}
ARCHIVED = FULL | {
    "id": BOB,
    "state": "archived",
    "failure_reason": None,
    "superseded_by": [ADA],
    "derived_from": [],
    "archived_at": LATER,
    "archive_reason": "enriched",
}


def entry(entry_id: str, content: str, **fields: Any) -> dict[str, Any]:
    """Return a line with the least that one must say."""
    return {"id": entry_id, "content": content} | fields


async def found(house: House, query: str, scope: Scope | None = None) -> list[str]:
    """Return the ids that a search of the index finds."""
    results = await memory_search.search(
        house.resources, scope or house.scope(), query, MemoryFilters(), SearchOptions(strategy="bm25")
    )
    assert results.degraded == []
    return [one.memory.id for one in results.results]


async def histories(house: House, entry_id: str) -> list[str]:
    """Return what happened to an entry."""
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        return [note["action"] for note in await history.list_for_memory(connection, house.tenant, entry_id)]


async def versions(house: House) -> dict[str, tuple[int, int]]:
    """Return (version, content version) of every entry."""
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        rows = await connection.execute(text("SELECT id, version, content_version FROM memory"))
        return {row.id: (row.version, row.content_version) for row in rows}


async def enrichment(house: House) -> set[str]:
    """Return the entries that wait for enrichment."""
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        rows = await connection.execute(text("SELECT record_id FROM job WHERE pipeline = 'enrichment'"))
        return {row.record_id for row in rows}


async def saved(house: House, content: str, scope: Scope | None = None) -> dict[str, Any]:
    """Save as an agent does."""
    return await save.save(
        house.resources, scope or house.scope(), "agent", MemoryDraft(content=content).validated()
    )


def line_of(one: dict[str, Any]) -> bytes:
    """Return an entry as a line."""
    return orjson.dumps(one) + b"\n"
