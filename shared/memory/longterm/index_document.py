"""How an entry is found: its text for keywords, its passage for the vector, what filters see."""

from sqlalchemy import RowMapping

from shared.foundation.stages import RecordKind
from shared.memory.longterm import decay
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.search.index.filters import NO_USER, path_prefixes, to_payload_time
from shared.search.index.points import IndexDocument
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text


def document(entry: Memory) -> IndexDocument:
    """Return an entry as the index holds it."""
    filters = {
        "agent_id": entry.agent_id,
        "user_id": entry.user_id or NO_USER,
        "category_prefixes": _category_prefixes(entry.category),
        "tags": entry.tags,
        "metadata": [pair(key, value) for key, value in entry.metadata.items()],
        "created_at": to_payload_time(entry.created_at),
        "occurred_at": to_payload_time(entry.occurred_at),
        "archived": entry.archived_at is not None,
    }
    speaker = entry.source.speaker if entry.source else None
    passage = indexed_text.embedding_text(entry.content, speaker=speaker)
    return IndexDocument(
        entry.tenant, RecordKind.MEMORY, entry.id, entry.version, keywords(entry), passage, filters
    )


def _category_prefixes(category: str | None) -> list[str]:
    """Return what a category is filtered by: its prefixes, and its root as `categories` compares it."""
    prefixes = path_prefixes(category)
    return list(dict.fromkeys([*prefixes, *(root.casefold() for root in prefixes[:1])]))


def keywords(entry: Memory | MemoryDraft) -> str:
    """Return the text whose words find the entry."""
    return indexed_text.keyword_text(entry.content, category=entry.category, tags=entry.tags)


def candidate(row: RowMapping, keyword: float | None, cosine: float | None) -> Candidate:
    """Return a row of `entry` as it is offered for ranking."""
    source = row["sources"][0] if row["sources"] else {}
    return Candidate(
        id=row["id"],
        text=indexed_text.keyword_text(row["content"], category=row["category"], tags=row["tags"]),
        keyword=keyword,
        cosine=cosine,
        importance=decay.effective_importance(row["importance"], row["last_seen_at"]),
        at=row["occurred_at"] or row["created_at"],
        speaker=source.get("speaker"),
        role=source.get("role"),
        session_id=source.get("session_id"),
        seq=source.get("seq"),
    )


def pair(key: str, value: str) -> str:
    """Return a metadata pair as one filterable word."""
    return f"{key}\x1f{value}"
