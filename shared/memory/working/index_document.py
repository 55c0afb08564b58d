"""How a desk entry is found: by the words of its key, its value, its tags and its category."""

from shared.foundation.stages import RecordKind
from shared.memory.working import keys
from shared.memory.working.working_entry import WorkingEntry
from shared.search.index.filters import path_prefixes, to_payload_time
from shared.search.index.points import IndexDocument
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text

_PASSAGE = 4_000


def document(tenant: str, entry: WorkingEntry) -> IndexDocument:
    """Return an entry, read whole, as the index holds it."""
    filters = {
        "namespace_prefixes": path_prefixes(keys.normalize_key(entry.key)),
        "category_prefixes": path_prefixes(entry.category),
        "tags": list(entry.tags),
        "expires_at": to_payload_time(entry.expires_at),
    }
    passage = indexed_text.embedding_text(entry.value[:_PASSAGE])
    return IndexDocument(
        tenant, RecordKind.WORKING, record_id_of(entry.key), version(entry), words(entry), passage, filters
    )


def record_id_of(key: str) -> str:
    """Return the index's name of an entry: its key as keys are compared."""
    return keys.normalize_key(key)


def version(entry: WorkingEntry) -> int:
    """Return the version of an entry: when it was stored, in milliseconds."""
    return round(entry.stored_at.timestamp() * 1000)


def words(entry: WorkingEntry) -> str:
    """Return the text whose words find the entry."""
    named = entry.key.replace("/", " ").replace("_", " ").replace("-", " ")
    return indexed_text.keyword_text(f"{named}\n{entry.value}", category=entry.category, tags=entry.tags)


def candidate(entry: WorkingEntry, keyword: float | None, cosine: float | None) -> Candidate:
    """Return an entry as it is offered for ranking."""
    return Candidate(entry.key, words(entry), keyword, cosine, at=entry.stored_at)
