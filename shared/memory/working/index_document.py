"""How a desk entry is found: by the words of its key, its value, its tags and its category."""

from shared.foundation.stages import Kind
from shared.memory.working import keys
from shared.memory.working.working_entry import DeskEntry
from shared.search.index.filters import instant, segments
from shared.search.index.points import Document
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text

_PASSAGE = 4_000


def document(tenant: str, entry: DeskEntry) -> Document:
    """Return an entry, read whole, as the index holds it."""
    filters = {
        "namespaces": segments(keys.fold(entry.key)),
        "categories": segments(entry.category),
        "tags": list(entry.tags),
        "expires_at": instant(entry.expires_at),
    }
    passage = indexed_text.dense_text(entry.value[:_PASSAGE])
    return Document(tenant, Kind.DESK, ref_of(entry.key), version(entry), words(entry), passage, filters)


def ref_of(key: str) -> str:
    """Return the index's name of an entry: its key as keys are compared."""
    return keys.fold(key)


def version(entry: DeskEntry) -> int:
    """Return the version of an entry: when it was stored, in milliseconds."""
    return round(entry.stored_at.timestamp() * 1000)


def words(entry: DeskEntry) -> str:
    """Return the text whose words find the entry."""
    named = entry.key.replace("/", " ").replace("_", " ").replace("-", " ")
    return indexed_text.keyword_text(f"{named}\n{entry.value}", category=entry.category, tags=entry.tags)


def candidate(entry: DeskEntry, keyword: float | None, cosine: float | None) -> Candidate:
    """Return an entry as it is offered for ranking."""
    return Candidate(entry.key, words(entry), keyword, cosine, at=entry.stored_at)
