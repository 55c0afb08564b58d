"""Turns as index documents and ranking candidates."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.conversation.turns import queries
from shared.conversation.turns.turn import Turn
from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.infra.transaction import Transaction
from shared.search.index.filters import NO_USER, to_payload_time
from shared.search.index.points import IndexDocument
from shared.search.ranking.candidate import Candidate
from shared.search.text import indexed_text


def document(scope: Scope, turn: Turn) -> IndexDocument:
    """Return the index document of a turn."""
    filters = {
        "agent_id": scope.agent_id,
        "user_id": scope.user_id or NO_USER,
        "session_id": turn.session_id,
        "created_at": to_payload_time(turn.created_at),
    }
    embedding_text = indexed_text.embedding_text(turn.content, speaker=turn.speaker)
    return IndexDocument(
        scope.tenant,
        RecordKind.TURN,
        turn.record_id,
        turn.version,
        keyword_text(turn),
        embedding_text,
        filters,
        may_replace=turn.edited_at is not None,
    )


def keyword_text(turn: Turn) -> str:
    """Return the text of a turn that keyword search matches."""
    return indexed_text.keyword_text(turn.content, speaker=turn.speaker)


def document_from_row(row: Mapping[str, Any]) -> IndexDocument:
    """Return the index document of a row of `turn`."""
    return document(Scope(row["tenant"], row["agent_id"], row["user_id"]), Turn.model_validate({**row}))


async def load_documents(tx: Transaction, record_ids: Sequence[str]) -> list[IndexDocument]:
    """Return the index documents of a tenant's turns, by record id."""
    return [document_from_row(row) for row in await queries.load_rows(tx, record_ids)]


def candidate(turn: Turn, keyword: float | None = None, cosine: float | None = None) -> Candidate:
    """Return a turn as a candidate for ranking."""
    return Candidate(
        id=turn.record_id,
        text=keyword_text(turn),
        keyword=keyword,
        cosine=cosine,
        day=turn.created_at.date(),
        speaker=turn.speaker,
        role=turn.role,
        session_id=turn.session_id,
        seq=turn.seq,
        said=turn.content,
        since=turn.created_at.timestamp(),
    )
