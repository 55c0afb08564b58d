"""Sample memories for imports, and queries for what the databases contain after an import."""

from typing import Any

import orjson
from sqlalchemy import text

from shared.foundation.scope import Scope
from shared.memory.longterm import history_queries, save
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import MemoryDraft
from shared.memory.longterm.search import SearchOptions
from tests.integration.transfer.conftest import TenantStack

ADA = "00000000ada0"
BOB = "00000000b0b0"
EARLIER = "2024-05-06T07:08:09.123456Z"
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
    "occurred_at": EARLIER,
    "sources": [{"session_id": "s/1", "seq": 7, "speaker": "Ada", "role": "user"}],
    "created_at": EARLIER,
    "updated_at": LATER,
    "last_seen_at": LATER,
    "reinforcement_count": 5,
    "agent_id": "a",
    "user_id": None,
    "superseded_by": [],
    "derived_from": [BOB],
    "archived_at": None,
    "archive_reason": None,
    "archived_by": None,
    "namespace": "",
    "key": None,
    "valid_from": None,
    "valid_until": None,
    "expires_at": None,
    "decided_by": None,
    "verdict": None,
    "judge_model": None,
    "contested_with": [],
    "origin": {"channel": "import", "trust": "user"},
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


def minimal_line(memory_id: str, content: str, **fields: Any) -> dict[str, Any]:
    """Return an import line with the required fields and `fields`."""
    return {"id": memory_id, "content": content} | fields


async def search_memory_ids(stack: TenantStack, query: str, scope: Scope | None = None) -> list[str]:
    """Return the ids of the memories that a keyword search of the index finds."""
    results = await memory_search.search(
        stack.resources, scope or stack.scope(), query, MemoryFilters(), SearchOptions(strategy="bm25")
    )
    assert results.degraded == []
    return [result.memory.id for result in results.results]


async def list_actions(stack: TenantStack, memory_id: str) -> list[str]:
    """Return the actions in the history of a memory."""
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        changes = await history_queries.list_for_memory(tx, memory_id)
        return [change["action"] for change in changes]


async def read_versions(stack: TenantStack) -> dict[str, tuple[int, int]]:
    """Return (version, content version) of every memory by its id."""
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        rows = await tx.execute(text("SELECT id, version, content_version FROM memory"))
        return {row.id: (row.version, row.content_version) for row in rows}


async def list_pending_enrichments(stack: TenantStack) -> set[str]:
    """Return the ids of the memories with an enrichment job."""
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        rows = await tx.execute(text("SELECT record_id FROM job WHERE pipeline = 'enrichment'"))
        return {row.record_id for row in rows}


async def save_memory(stack: TenantStack, content: str, scope: Scope | None = None) -> dict[str, Any]:
    """Save a memory as an agent does, and return it."""
    return await save.save(
        stack.resources, scope or stack.scope(), stack.caller, MemoryDraft(content=content).validated()
    )


def encode_line(memory: dict[str, Any]) -> bytes:
    """Return a memory as one line of NDJSON."""
    return orjson.dumps(memory) + b"\n"
