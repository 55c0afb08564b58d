"""How a turn is found across sessions."""

from collections.abc import Mapping
from typing import Any

from shared.conversation.turns.queries import VERSION
from shared.conversation.turns.turn import Turn
from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.search.index.filters import NO_USER, to_payload_time
from shared.search.index.points import IndexDocument
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text


def document(scope: Scope, turn: Turn) -> IndexDocument:
    """Return a turn as the index holds it."""
    filters = {
        "agent_id": scope.agent_id,
        "user_id": scope.user_id or NO_USER,
        "session_id": turn.session_id,
        "created_at": to_payload_time(turn.created_at),
    }
    keywords = indexed_text.keyword_text(turn.content, speaker=turn.speaker)
    passage = indexed_text.embedding_text(turn.content, speaker=turn.speaker)
    return IndexDocument(scope.tenant, RecordKind.TURN, turn.record_id, VERSION, keywords, passage, filters)


def of_row(row: Mapping[str, Any]) -> IndexDocument:
    """Return the document of a row of `turn`."""
    return document(Scope(row["tenant"], row["agent_id"], row["user_id"]), Turn.model_validate({**row}))


def candidate(turn: Turn, keyword: float | None = None, cosine: float | None = None) -> Candidate:
    """Return a turn as it is offered for ranking."""
    return Candidate(
        id=turn.record_id,
        text=indexed_text.keyword_text(turn.content, speaker=turn.speaker),
        keyword=keyword,
        cosine=cosine,
        at=turn.created_at,
        speaker=turn.speaker,
        role=turn.role,
        session_id=turn.session_id,
        seq=turn.seq,
    )
