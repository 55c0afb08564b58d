"""Preferences as index documents: a preference is found by the situation that it describes.

One without a description has no document. It is found by its flow alone.
"""

from shared.foundation.stages import RecordKind
from shared.memory.preferences.preference import Preference
from shared.search.index.filters import NO_USER
from shared.search.index.points import IndexDocument
from shared.search.text import indexed_text

ANY_FLOW = ""
"""The flow of a preference that names none, because filtering by a missing field is slow."""


def document(preference: Preference) -> IndexDocument:
    """Return the index document of a preference that describes a situation."""
    description = preference.condition.description or ""
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
