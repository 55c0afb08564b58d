"""A working-memory entry as the index sees it: key, value, tags and category are its keyword text."""

from shared.foundation.stages import RecordKind
from shared.memory.working import keys
from shared.memory.working.working_entry import WorkingEntry
from shared.search.index.filters import path_prefixes, to_payload_time
from shared.search.index.points import IndexDocument
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text

_MAX_EMBEDDED_CHARS = 4_000


def document(tenant: str, entry: WorkingEntry) -> IndexDocument:
    """Return the index document of an entry that has its whole value."""
    filters = {
        "namespace_prefixes": path_prefixes(keys.normalize_key(entry.key)),
        "category_prefixes": path_prefixes(entry.category),
        "tags": list(entry.tags),
        "expires_at": to_payload_time(entry.expires_at),
    }
    embedding_text = indexed_text.embedding_text(entry.value[:_MAX_EMBEDDED_CHARS])
    return IndexDocument(
        tenant,
        RecordKind.WORKING,
        record_id_of(entry.key),
        entry.version,
        keywords(entry),
        embedding_text,
        filters,
    )


def record_id_of(key: str) -> str:
    """Return the record id of an entry: its normalised key."""
    return keys.normalize_key(key)


def keywords(entry: WorkingEntry) -> str:
    """Return the keyword text of an entry."""
    key_words = entry.key.replace("/", " ").replace("_", " ").replace("-", " ")
    return indexed_text.keyword_text(f"{key_words}\n{entry.value}", category=entry.category, tags=entry.tags)


def candidate(entry: WorkingEntry, keyword: float | None, cosine: float | None) -> Candidate:
    """Return the ranking candidate of an entry, with the scores of its hit."""
    return Candidate(entry.key, keywords(entry), keyword, cosine, day=entry.stored_at.date())
