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
from tests.integration.transfer.conftest import TenantStack

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


def minimal_line(entry_id: str, content: str, **fields: Any) -> dict[str, Any]:
    """Return a line with the least that one must say."""
    return {"id": entry_id, "content": content} | fields


async def search_ids(stack: TenantStack, query: str, scope: Scope | None = None) -> list[str]:
    """Return the ids that a search of the index finds."""
    results = await memory_search.search(
        stack.resources, scope or stack.scope(), query, MemoryFilters(), SearchOptions(strategy="bm25")
    )
    assert results.degraded == []
    return [item.memory.id for item in results.results]


async def list_actions(stack: TenantStack, entry_id: str) -> list[str]:
    """Return what happened to an entry."""
    async with stack.resources.postgres.for_tenant(stack.tenant) as connection:
        return [note["action"] for note in await history.list_for_memory(connection, stack.tenant, entry_id)]


async def versions(stack: TenantStack) -> dict[str, tuple[int, int]]:
    """Return (version, content version) of every entry."""
    async with stack.resources.postgres.for_tenant(stack.tenant) as connection:
        rows = await connection.execute(text("SELECT id, version, content_version FROM memory"))
        return {row.id: (row.version, row.content_version) for row in rows}


async def pending_enrichments(stack: TenantStack) -> set[str]:
    """Return the entries that wait for enrichment."""
    async with stack.resources.postgres.for_tenant(stack.tenant) as connection:
        rows = await connection.execute(text("SELECT record_id FROM job WHERE pipeline = 'enrichment'"))
        return {row.record_id for row in rows}


async def save_memory(stack: TenantStack, content: str, scope: Scope | None = None) -> dict[str, Any]:
    """Save as an agent does."""
    return await save.save(
        stack.resources, scope or stack.scope(), "agent", MemoryDraft(content=content).validated()
    )


def line_of(item: dict[str, Any]) -> bytes:
    """Return an entry as a line."""
    return orjson.dumps(item) + b"\n"
