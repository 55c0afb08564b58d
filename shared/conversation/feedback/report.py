"""Report feedback signals and read recent ones.

A signal belongs to the agent and the user of its session. `recent` reads exactly one scope: either
the agent's sessions without a user, or the sessions of one user. Dreams learn by scope, so a
correction that belonged to two scopes would be learnt twice.

A doubtful correction counts by its likelihood until a model has judged it (`judge.py`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from shared.conversation.feedback import detect, queries
from shared.conversation.feedback.feedback_signal import FeedbackSignal, FeedbackSignalDraft, SignalType
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.foundation.scope import Caller, Scope
from shared.infra.transaction import Transaction
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources

DEFAULT_DAYS = 7
DEFAULT_LIMIT = 50
CORRECTION_SUMMARY = "The user corrected the agent."
_MAX_QUOTED = 200
MAX_PREVIOUS = 1000
"""The most characters of the assistant's turn before that the detector and a model are shown, its end."""


class UserText(NamedTuple):
    """What a user said in a turn, and the assistant's turn before it, if it is needed and there is one.

    `likelihood` is the score of the two, if it is known.
    """

    seq: int
    content: str
    likelihood: float | None = None
    previous: str | None = None
    previous_seq: int | None = None


async def report(
    resources: Resources,
    caller: Caller,
    session_id: str,
    draft: FeedbackSignalDraft,
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Store a validated signal of a session and return the signal as JSON.

    Raises errors.NotFound if there is no such session that the caller may see.
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            return dict(request.stored)
        # Locked, because a signal of a session that is being deleted could not be stored.
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        [signal] = await queries.insert_rows(tx, session, [draft])
        response = signal.model_dump(mode="json")
        await request.store(response, record_ids=[session_id], user_id=session.user_id)
    return response


async def list_signals(
    resources: Resources,
    caller: Caller,
    filters: Mapping[str, str],
    days: int,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[FeedbackSignal]:
    """Return signals of the last `days` days that the caller may see, newest first.

    `filters` are column values. `after` is the (created_at, id) of the last signal of the previous page.
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await queries.list_page(tx, caller, filters, days, limit, after)


async def note_corrections(tx: Transaction, session: Session, texts: Sequence[UserText]) -> None:
    """Store a signal for each user text that corrects the agent, or perhaps does."""
    drafts = [_correction_draft(text) for text in texts]
    await queries.insert_rows(tx, session, [draft for draft in drafts if draft is not None])


def _correction_draft(text: UserText) -> FeedbackSignalDraft | None:
    likelihood = text.likelihood
    if likelihood is None:
        likelihood = detect.score(text.content, text.previous)
    if likelihood < detect.DOUBTFUL_SCORE:
        return None
    draft = FeedbackSignalDraft(
        type=SignalType.CORRECTION,
        summary=CORRECTION_SUMMARY,
        detail=text.content[:_MAX_QUOTED],
        first_seq=text.seq,
        seq=text.seq,
    )
    if likelihood >= detect.SURE_SCORE:
        return draft
    excerpt = text.previous[-MAX_PREVIOUS:] if text.previous else None
    doubt = {"likelihood": likelihood, "previous": excerpt, "previous_seq": text.previous_seq}
    return draft.model_copy(update=doubt)


async def recent(
    tx: Transaction, scope: Scope, *, days: float = DEFAULT_DAYS, limit: int = DEFAULT_LIMIT
) -> list[FeedbackSignal]:
    """Return the newest `limit` signals of the last `days` days of exactly this scope, newest first."""
    return await queries.list_newest(tx, scope, days, limit)
