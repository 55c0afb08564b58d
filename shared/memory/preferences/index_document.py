"""Preferences as index documents: a preference is found by the situation that it describes.

One without a description has no document. It is found by its flow alone.
"""

from collections.abc import Sequence

from shared.foundation.stages import RecordKind
from shared.infra.transaction import Transaction
from shared.memory.preferences import queries
from shared.memory.preferences.preference import Preference
from shared.search.index.filters import NO_USER
from shared.search.index.points import IndexDocument
from shared.search.text import indexed_text

ANY_FLOW = ""
"""The flow of a preference that names none, because filtering by a missing field is slow."""


def documents(preferences: Sequence[Preference]) -> list[IndexDocument]:
    """Return the index documents of those preferences that describe a situation."""
    return [
        _document(preference, preference.condition.description)
        for preference in preferences
        if preference.condition.description is not None
    ]


def _document(preference: Preference, description: str) -> IndexDocument:
    filters = {
        "agent_id": preference.agent_id,
        "user_id": preference.user_id or NO_USER,
        "flow": preference.condition.flow or ANY_FLOW,
    }
    return IndexDocument(
        preference.tenant,
        RecordKind.PREFERENCE,
        preference.id,
        preference.version,
        indexed_text.keyword_text(description),
        indexed_text.embedding_text(description),
        filters,
    )


async def load_documents(tx: Transaction, record_ids: Sequence[str]) -> list[IndexDocument]:
    """Return the index documents of a tenant's preferences, by record id."""
    return documents(await queries.list_by_ids(tx, record_ids))
