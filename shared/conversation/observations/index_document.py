"""Observations as index documents and ranking candidates.

The data of an observation is part of the keyword text but not of the embedding text, because JSON
syntax would dominate the embedding. The kind is indexed as a category.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from shared.conversation.observations.observation import Observation
from shared.foundation.stages import RecordKind
from shared.search.index.filters import NO_USER, to_payload_time
from shared.search.index.points import IndexDocument
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text

VERSION = 1
"""An observation never changes, so its point has one version."""


def document(observation: Observation) -> IndexDocument:
    """Return the index document of an observation."""
    filters = {
        "agent_id": observation.agent_id,
        "user_id": observation.user_id or NO_USER,
        "session_id": observation.session_id,
        "category_prefixes": [observation.kind],
        "tags": observation.tags,
        "created_at": to_payload_time(observation.at),
    }
    embedding_text = indexed_text.embedding_text(observation.content)
    return IndexDocument(
        observation.tenant,
        RecordKind.OBSERVATION,
        observation.id,
        VERSION,
        _text_of(observation),
        embedding_text,
        filters,
        may_replace=False,
    )


def keyword_text(columns: Mapping[str, Any]) -> str:
    """Return the text that keyword search matches: the content, tags and data of an observation."""
    text = indexed_text.keyword_text(columns["content"], tags=columns["tags"])
    return "\n".join(filter(None, [text, _data_text(columns.get("data"))]))


def _text_of(observation: Observation) -> str:
    return keyword_text({"content": observation.content, "tags": observation.tags, "data": observation.data})


def _data_text(data: Mapping[str, Any] | None) -> str:
    return orjson.dumps(data).decode() if data else ""


def candidate(
    observation: Observation, keyword: float | None = None, cosine: float | None = None
) -> Candidate:
    """Return an observation as a candidate for ranking."""
    return Candidate(
        id=observation.id,
        text=_text_of(observation),
        keyword=keyword,
        cosine=cosine,
        day=observation.at.date(),
        session_id=observation.session_id,
        said=observation.content,
        since=observation.at.timestamp(),
    )
