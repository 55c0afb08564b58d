"""Delete single turns of sessions that stay."""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.sessions import queries as session_queries
from shared.conversation.turns import index_document as turn_document
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import turn_key_of
from shared.foundation.content import Subject
from shared.foundation.stages import RecordKind
from shared.lifecycle import deletion, removal
from shared.lifecycle.deletion import Deletion
from shared.lifecycle.removal import Removal
from shared.search.index import embedding_cache


async def delete_rows(connection: AsyncConnection, tenant: str, record_ids: Sequence[str]) -> Removal:
    """Delete turns with every copy of their text; return what is to be removed after the commit."""
    session_ids = sorted({turn_key_of(record_id)[0] for record_id in record_ids})
    rows = Deletion(tenant, {Subject.TURN: list(record_ids)})
    if record_ids and await embedding_cache.has_any(connection, tenant):
        turns = await turn_queries.load_rows(connection, tenant, record_ids)
        rows.embedding_texts = [turn_document.document_from_row(turn).embedding_text for turn in turns]
    await session_queries.lock(connection, tenant, session_ids)
    await turn_queries.remove(connection, tenant, record_ids)
    rows.add_items(removal.points_of(RecordKind.TURN), record_ids)
    rows.add_items(removal.WINDOW, session_ids)
    _, rest = await deletion.carry_out(connection, rows)
    return rest
