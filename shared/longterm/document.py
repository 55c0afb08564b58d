"""How an entry is found: its text for keywords, its passage for the vector, what filters see."""

from shared.index import texts
from shared.index.candidate import Candidate
from shared.index.points import NOBODY, Document, instant, segments
from shared.longterm.record import Draft, Entry
from shared.stages import Kind


def document(entry: Entry) -> Document:
    """Return an entry as the index holds it."""
    filters = {
        "agent": entry.agent_id,
        "user": entry.user_id or NOBODY,
        "categories": segments(entry.category),
        "tags": entry.tags,
        "metadata": [pair(key, value) for key, value in entry.metadata.items()],
        "at": instant(entry.created_at),
        "occurred_at": instant(entry.occurred_at),
        "archived": entry.archived_at is not None,
    }
    speaker = entry.source.speaker if entry.source else None
    passage = texts.dense_text(entry.content, speaker=speaker)
    return Document(entry.tenant, Kind.MEMORY, entry.id, entry.version, keywords(entry), passage, filters)


def keywords(entry: Entry | Draft) -> str:
    """Return the text whose words find the entry."""
    return texts.keyword_text(entry.content, category=entry.category, tags=entry.tags)


def candidate(entry: Entry, keyword: float | None, cosine: float | None) -> Candidate:
    """Return an entry as it is offered for ranking."""
    source = entry.source
    return Candidate(
        id=entry.id,
        text=keywords(entry),
        keyword=keyword,
        cosine=cosine,
        importance=entry.importance,
        at=entry.at,
        speaker=source.speaker if source else None,
        role=source.role if source else None,
        session_id=source.session_id if source else None,
        seq=source.seq if source else None,
    )


def pair(key: str, value: str) -> str:
    """Return a metadata pair as one filterable word."""
    return f"{key}\x1f{value}"
