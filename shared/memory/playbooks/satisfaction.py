"""Tell from a session whether its user was satisfied with a flow: what they said of it, or said next.

What was reported since the flow's last turn counts first. Else the user's next turn decides: whoever goes on
without a correction is satisfied. While there is no such turn, the playbook waits for it.
"""

from sqlalchemy import ColumnElement, or_
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.feedback.feedback_signal import SignalType
from shared.conversation.scratchpad.near_identical import are_near_identical
from shared.conversation.sessions.session import Session
from shared.conversation.turns import log_queries
from shared.memory.playbooks.playbook import Reason

_REASONS = {
    SignalType.USER_THUMBS_UP: Reason.SATISFIED,
    SignalType.USER_THUMBS_DOWN: Reason.DISSATISFIED,
    SignalType.CORRECTION: Reason.CORRECTED,
}
_MAX_SINCE_REPLY = 100
"""Turns of the user since the agent's last one that are looked at."""


async def last_turn_of_flow(connection: AsyncConnection, session: Session, user_query: str) -> int:
    """Return the number of the turn that a flow ended with: the agent's last one, if it said anything.

    A skill may report before its agent answers. Then the last turn is the one in which the user asked.
    """
    reply = await log_queries.last_reply(connection, session.tenant, session.id)
    if reply is None:
        return session.last_seq
    since = await log_queries.list_page(connection, session.tenant, session.id, reply, _MAX_SINCE_REPLY)
    asked = [turn.seq for turn in since if are_near_identical(turn.content, user_query)]
    return max([reply, *asked])


def is_decidable(
    tenant: str, session_id: ColumnElement[str], last_seq: ColumnElement[int]
) -> ColumnElement[bool]:
    """Return the condition that `judge` does not say WAITING, in a statement that has both columns."""
    since = log_queries.received_at_of(tenant, session_id, last_seq)
    return or_(
        log_queries.is_continued(tenant, session_id, last_seq),
        feedback_queries.has_verdict(tenant, session_id, since),
    )


async def judge(connection: AsyncConnection, tenant: str, session_id: str, last_seq: int) -> Reason:
    """Return why a completed flow, whose last turn has the number `last_seq`, is promoted or is not."""
    since = await log_queries.received_at(connection, tenant, session_id, last_seq)
    verdict = await feedback_queries.last_verdict(connection, tenant, session_id, since)
    if verdict is not None:
        return _REASONS[verdict]
    next_seq = await log_queries.next_of_user(connection, tenant, session_id, last_seq)
    if next_seq is None:
        return Reason.WAITING
    is_correction = await feedback_queries.is_correction(connection, tenant, session_id, next_seq)
    return Reason.CORRECTED if is_correction else Reason.CONTINUED
