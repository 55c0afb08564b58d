"""Build the rows of new memories for `queries.upsert`, and the columns computed from other columns."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from shared.foundation.ids import new_record_id
from shared.foundation.origin import Origin
from shared.foundation.stages import MemoryState
from shared.memory.longterm import index_document
from shared.memory.longterm.fingerprint import fingerprint, fingerprint_of
from shared.memory.longterm.memory import Memory, MemoryDraft, Source
from shared.search.text import tsvector


def row_from_draft(
    draft: MemoryDraft, origin: Origin, state: MemoryState = MemoryState.FINAL, **columns: Any
) -> dict[str, Any]:
    """Return the row of a new memory with the content of a draft. `columns` are set in addition."""
    row: dict[str, Any] = {
        "content": draft.content,
        "category": draft.category,
        "tags": list(draft.tags),
        "metadata": draft.metadata,
        "importance": draft.importance,
        "occurred_at": draft.occurred_at,
        "namespace": draft.namespace,
        "key": draft.key,
        **origin.columns(),
        **lifetime_columns(draft),
        **derived_columns(draft),
    }
    return _complete(new_record_id(), row | {"state": state} | columns)


def row_from_learned_draft(
    draft: MemoryDraft, origin: Origin, sources: Iterable[Source] = ()
) -> dict[str, Any]:
    """Return the row of a memory that a dream pass learned from these sources."""
    return row_from_draft(draft, origin, sources=[source.model_dump() for source in sources])


def row_with_columns(
    memory_id: str,
    origin: Origin,
    *,
    content: str,
    fingerprint: bytes,
    indexed_text: str,
    state: str,
    **columns: Any,
) -> dict[str, Any]:
    """Return the row of a new memory whose derived columns the caller has computed."""
    derived = {"fingerprint": fingerprint, "search_terms": tsvector.terms_of(indexed_text)}
    return _complete(memory_id, columns | {"content": content, "state": state} | origin.columns() | derived)


def with_time(row: Mapping[str, Any], occurred_at: datetime | None) -> dict[str, Any]:
    """Return a row that is about another time, so that it joins a live memory of its text and that time."""
    digest = fingerprint(row["content"], occurred_at)
    return {**row, "occurred_at": occurred_at, "fingerprint": _encoded(digest)}


def lifetime_columns(memory: Memory | MemoryDraft) -> dict[str, datetime | None]:
    """Return the columns that say from when to when a memory is valid, and when it is deleted."""
    names = ("valid_from", "valid_until", "expires_at")
    return {name: getattr(memory, name) for name in names}


def derived_columns(memory: Memory | MemoryDraft) -> dict[str, Any]:
    """Return the columns that every insert, update and import computes from the other fields.

    `fingerprint` is bytes. `search_terms` is a list of terms, not yet a tsvector.
    """
    return {
        "fingerprint": fingerprint_of(memory),
        "search_terms": tsvector.terms_of(index_document.keywords(memory)),
    }


def _complete(memory_id: str, columns: dict[str, Any]) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "category": None,
        "tags": [],
        "metadata": {},
        "importance": 0.5,
        "occurred_at": None,
        "namespace": "",
        "key": None,
        "valid_from": None,
        "valid_until": None,
        "expires_at": None,
        "sources": [],
        "saved_without_source": False,
        "derived_from": [],
        "reinforcement_count": 1,
        "created_at": None,
        "last_seen_at": None,
        "decided_by": None,
        "verdict": None,
        "judge_model": None,
    }
    # The statement reads its rows as JSON, where bytea is written in hexadecimal.
    encoded = {"id": memory_id, "fingerprint": _encoded(columns["fingerprint"])}
    return defaults | columns | encoded


def _encoded(digest: bytes) -> str:
    return "\\x" + digest.hex()
