"""Entries that a dream makes, as rows for `longterm.store.upsert`."""

import secrets
from collections.abc import Iterable
from typing import Any

from shared.dreams.merge import MergedFields
from shared.index import texts
from shared.longterm import rows, store
from shared.longterm.fingerprint import fingerprint
from shared.longterm.record import Draft, Source
from shared.stages import State


def of_merge(fields: MergedFields) -> dict[str, Any]:
    """Return the row of an entry that takes the place of its sources."""
    return store.row_of(
        secrets.token_hex(6),
        content=fields.content,
        fingerprint=fingerprint(fields.content, fields.occurred_at),
        indexed_text=texts.keyword_text(fields.content, category=fields.category, tags=fields.tags),
        state=State.FINAL,
        category=fields.category,
        tags=list(fields.tags),
        metadata=fields.metadata,
        importance=fields.importance,
        occurred_at=fields.occurred_at,
        sources=[source.model_dump() for source in fields.sources],
        derived_from=list(fields.derived_from),
        reinforcement_count=fields.reinforcement_count,
        created_at=fields.created_at,
        last_seen_at=fields.last_seen_at,
    )


def of_draft(draft: Draft, session_ids: Iterable[str] = ()) -> dict[str, Any]:
    """Return the row of an entry that a pass learned in these sessions."""
    sources = [Source(session_id=one).model_dump() for one in session_ids]
    return rows.of_draft(draft, sources=sources)
