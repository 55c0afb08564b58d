"""Drafts as rows for `store.upsert`: how a new entry is put together, whoever makes it."""

import secrets
from collections.abc import Iterable
from typing import Any

from shared.foundation.stages import MemoryState
from shared.memory.longterm import index_document
from shared.memory.longterm.fingerprint import fingerprint
from shared.memory.longterm.memory import MemoryDraft, Source
from shared.search.text import tsvector


def row_from_draft(draft: MemoryDraft, state: MemoryState = MemoryState.FINAL, **more: Any) -> dict[str, Any]:
    """Return the row of a new entry that says what the draft does; `more` are further columns."""
    said: dict[str, Any] = {
        "content": draft.content,
        "fingerprint": fingerprint(draft.content, draft.occurred_at),
        "indexed_text": index_document.keywords(draft),
        "category": draft.category,
        "tags": list(draft.tags),
        "metadata": draft.metadata,
        "importance": draft.importance,
        "occurred_at": draft.occurred_at,
    }
    return row_of(secrets.token_hex(6), state=state, **(said | more))


def row_from_learned_draft(draft: MemoryDraft, session_ids: Iterable[str] = ()) -> dict[str, Any]:
    """Return the row of an entry that a pass learned in these sessions."""
    sources = [Source(session_id=one).model_dump() for one in session_ids]
    return row_from_draft(draft, sources=sources)


def row_of(
    entry_id: str,
    *,
    content: str,
    fingerprint: bytes,
    indexed_text: str,
    state: str,
    **fields: Any,
) -> dict[str, Any]:
    """Return a row as `upsert` takes it."""
    defaults: dict[str, Any] = {
        "category": None,
        "tags": [],
        "metadata": {},
        "importance": 0.5,
        "occurred_at": None,
        "sources": [],
        "derived_from": [],
        "reinforcement_count": 1,
        "created_at": None,
        "last_seen_at": None,
    }
    own = {
        "id": entry_id,
        "content": content,
        "state": state,
        "fingerprint": "\\x" + fingerprint.hex(),
        "search_terms": tsvector.terms_of(indexed_text),
    }
    return defaults | fields | own
