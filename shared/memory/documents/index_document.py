"""Chunks of documents as index documents and ranking candidates.

The title belongs to the document and can change without its chunks, so it is neither indexed nor embedded.
"""

from shared.foundation.stages import RecordKind
from shared.memory.documents.document import DocumentChunk
from shared.search.index.filters import to_payload_time
from shared.search.index.points import IndexDocument
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text

VERSION = 1
"""A chunk never changes, so its point has one version."""


def document(chunk: DocumentChunk) -> IndexDocument:
    """Return the index document of a chunk."""
    return IndexDocument(
        chunk.tenant,
        RecordKind.DOCUMENT_CHUNK,
        chunk.id,
        VERSION,
        keyword_text(chunk),
        indexed_text.embedding_text(chunk.content),
        {"created_at": to_payload_time(chunk.created_at)},
        may_replace=False,
    )


def keyword_text(chunk: DocumentChunk) -> str:
    """Return the text that keyword search matches."""
    return indexed_text.keyword_text(chunk.content)


def candidate(chunk: DocumentChunk, keyword: float | None = None, cosine: float | None = None) -> Candidate:
    """Return a chunk as a candidate for ranking."""
    return Candidate(
        id=chunk.id, text=keyword_text(chunk), keyword=keyword, cosine=cosine, said=chunk.content
    )
