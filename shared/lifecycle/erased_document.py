"""What an erasure deletes of a document whose row is gone: its chunks, which nobody finds any more."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.foundation.content import Subject
from shared.foundation.stages import RecordKind
from shared.infra.transaction import Transaction
from shared.lifecycle import deletion, removal
from shared.lifecycle.deletion import Deletion
from shared.lifecycle.removal import Removal
from shared.memory.documents import chunk_queries
from shared.search.text import indexed_text

CHUNKS = removal.points_of(RecordKind.DOCUMENT_CHUNK)


@dataclass(frozen=True, slots=True)
class ErasedDocument:
    """A document that was deleted, as the target of an erasure."""

    id: str

    @property
    def subject(self) -> Subject:
        """What the id stands for."""
        return Subject.DOCUMENT

    @property
    def owners(self) -> Mapping[Subject, str]:
        """Nobody: a document belongs to the tenant."""
        return {}

    async def count_rows(self, tx: Transaction) -> int:
        """Return the number of chunks."""
        return len(await chunk_queries.list_other_versions(tx, self.id, ()))

    async def collect(self, tx: Transaction, limit: int | None = None) -> tuple[Deletion, Counter[str], bool]:
        """Return the deletion of up to `limit` chunks, their numbers, and whether these are all.

        Nobody else writes them: who did has lost the document, and with it the lock that it would need.
        """
        chunks = await chunk_queries.list_other_versions(tx, self.id, (), limit)
        rows = Deletion(tx.tenant)
        rows.add_items(CHUNKS, [chunk_id for chunk_id, _ in chunks])
        rows.embedding_texts += embedding_texts(chunks)
        counts = Counter(document_chunks=len(chunks), points=len(chunks))
        return rows, counts, limit is None or len(chunks) < limit

    async def erase(self, tx: Transaction, rows: Deletion, erasure_id: str) -> tuple[Counter[str], Removal]:
        """Delete collected chunks and what else was added to them; return what is left to remove."""
        await chunk_queries.delete_chunks(tx, sorted(rows.items[CHUNKS]))
        _, rest = await deletion.carry_out(tx, rows, erasure_id)
        return Counter(), rest


def embedding_texts(chunks: Sequence[tuple[str, str]]) -> list[str]:
    """Return what was embedded of chunks, given as (id, content)."""
    return [indexed_text.embedding_text(text) for _, text in chunks]
