"""A memory as the index sees it: its keyword text, its embedding text and its filters."""

from collections.abc import Sequence

from sqlalchemy import RowMapping

from shared.foundation.stages import RecordKind
from shared.infra.transaction import Transaction
from shared.memory.longterm import decay, queries
from shared.memory.longterm.index_filter import NO_SESSION
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.search.index.filters import NO_USER, metadata_pair, path_prefixes, to_payload_time
from shared.search.index.points import IndexDocument
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text


def document(memory: Memory) -> IndexDocument:
    """Return the index document of a memory."""
    filters = {
        "agent_id": memory.agent_id,
        "user_id": memory.user_id or NO_USER,
        "category_prefixes": _category_prefixes(memory.category),
        "tags": memory.tags,
        "metadata": [metadata_pair(key, value) for key, value in memory.metadata.items()],
        "created_at": to_payload_time(memory.created_at),
        "occurred_at": to_payload_time(memory.occurred_at),
        "archived": memory.archived_at is not None,
        "evidence": memory.is_evidence,
        "namespace_prefixes": path_prefixes(memory.namespace or None),
        "key": memory.key,
        "valid_from": to_payload_time(memory.valid_from),
        "valid_until": to_payload_time(memory.valid_until),
        "session_id": memory.source.session_id if memory.source else NO_SESSION,
    }
    speaker = memory.source.speaker if memory.source else None
    embedding_text = indexed_text.embedding_text(memory.content, speaker=speaker)
    return IndexDocument(
        memory.tenant,
        RecordKind.MEMORY,
        memory.id,
        memory.version,
        keywords(memory),
        embedding_text,
        filters,
        may_replace=memory.version > 1,
    )


async def load_documents(tx: Transaction, record_ids: Sequence[str]) -> list[IndexDocument]:
    """Return the index documents of a tenant's memories, by record id."""
    return [document(memory) for memory in await queries.read(tx, record_ids)]


def _category_prefixes(category: str | None) -> list[str]:
    """Return the category's path prefixes, and its root case-folded, as `categories` compares it."""
    prefixes = path_prefixes(category)
    return list(dict.fromkeys([*prefixes, *(root.casefold() for root in prefixes[:1])]))


def keywords(memory: Memory | MemoryDraft) -> str:
    """Return the keyword text of a memory."""
    return indexed_text.keyword_text(memory.content, category=memory.category, tags=memory.tags)


def keywords_of_row(row: RowMapping) -> str:
    """Return the keyword text of a row of `memory`."""
    return indexed_text.keyword_text(row["content"], category=row["category"], tags=row["tags"])


def candidate(row: RowMapping, keyword: float | None, cosine: float | None) -> Candidate:
    """Return the ranking candidate of a row with `RANKED_COLUMNS`, with the scores of its hit."""
    # Not by the names of the fields, which would take half as long again: a search makes hundreds of them.
    return Candidate(
        row["id"],
        keywords_of_row(row),
        keyword,
        cosine,
        decay.decayed(row["importance"], row["seconds_unseen"]),
        row["day"],
        row["speaker"],
        row["role"],
        row["source_session_id"],
        row["source_seq"],
        row["content"],
        row["since"],
        row["key"] and (row["agent_id"], row["namespace"], row["key"]),
        row["user_id"],
    )
