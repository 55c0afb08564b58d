"""How an observation is found.

The words of its data count among the keywords and not in the vector, where the form of JSON would
drown the sentence. Its kind is what the index calls a category.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from shared.conversation.observations.observation import Observation, ObservationDraft
from shared.foundation.stages import RecordKind
from shared.search.index.filters import NO_USER, to_payload_time
from shared.search.index.points import IndexDocument
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text

VERSION = 1
"""An observation never changes, so its point has one version."""


def document(observed: Observation) -> IndexDocument:
    """Return an observation as the index holds it."""
    filters = {
        "agent_id": observed.agent_id,
        "user_id": observed.user_id or NO_USER,
        "session_id": observed.session_id,
        "category_prefixes": [observed.kind],
        "tags": observed.tags,
        "created_at": to_payload_time(observed.at),
    }
    passage = indexed_text.embedding_text(observed.content)
    kind = RecordKind.OBSERVATION
    return IndexDocument(observed.tenant, kind, observed.id, VERSION, keywords(observed), passage, filters)


def keywords(observed: Observation | ObservationDraft) -> str:
    """Return the text whose words find the observation."""
    return "\n".join(
        filter(
            None, [indexed_text.keyword_text(observed.content, tags=observed.tags), _words_of(observed.data)]
        )
    )


def _words_of(data: Mapping[str, Any] | None) -> str:
    return orjson.dumps(data).decode() if data else ""


def candidate(observed: Observation, keyword: float | None = None, cosine: float | None = None) -> Candidate:
    """Return an observation as it is offered for ranking."""
    return Candidate(
        id=observed.id,
        text=keywords(observed),
        keyword=keyword,
        cosine=cosine,
        at=observed.at,
        session_id=observed.session_id,
    )
