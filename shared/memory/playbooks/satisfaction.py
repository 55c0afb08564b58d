"""Tell from a session whether its user was satisfied with a flow: what they said of it, or said next.

What was reported since the flow's last turn counts first, and then a thumbs-up of while the flow ran: the
order of reports does not matter. What the user disliked on the way was about a step. Else the user's next
turn decides: whoever goes on without a correction is satisfied. While there is no such turn, the playbook
waits for it.
"""

from sqlalchemy import ColumnElement, or_

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.feedback.feedback_signal import SignalType
from shared.conversation.scratchpad.near_identical import are_near_identical
from shared.conversation.sessions.session import Session
from shared.conversation.turns import log_queries
from shared.foundation.roles import Role
from shared.infra.transaction import Transaction
from shared.memory.playbooks.playbook import FlowTurns, Reason

_REASONS = {
    SignalType.USER_THUMBS_UP: Reason.SATISFIED,
    SignalType.USER_THUMBS_DOWN: Reason.DISSATISFIED,
    SignalType.CORRECTION: Reason.CORRECTED,
}
_MAX_TURNS = 100
"""Turns that are looked at: of the user since the agent's last one, and those before the flow's end."""


async def turns_of_flow(tx: Transaction, session: Session, user_query: str) -> FlowTurns:
    """Return the turns of a flow: from the one in which the user asked to the one that it ended with.

    The last one is the agent's last one, if it said anything. A skill may report before its agent answers.
    Then it is the one in which the user asked.
    """
    reply = await log_queries.last_reply(tx, session.id)
    if reply is None:
        last_seq = session.last_seq
    else:
        since = await log_queries.list_page(tx, session.id, reply, _MAX_TURNS)
        asked = [turn.seq for turn in since if are_near_identical(turn.content, user_query)]
        last_seq = max([reply, *asked])
    return FlowTurns(await _first_seq(tx, session, user_query, last_seq), last_seq)


async def _first_seq(tx: Transaction, session: Session, user_query: str, last_seq: int) -> int:
    """Return the number of the last turn in which the user asked this; else that of their last turn."""
    turns = await log_queries.list_page_before(tx, session.id, last_seq + 1, _MAX_TURNS)
    of_user = [turn for turn in turns if turn.role is Role.USER]
    asked = [turn.seq for turn in of_user if are_near_identical(turn.content, user_query)]
    return max(asked or [turn.seq for turn in of_user] or [last_seq])


async def with_repeated_query(
    tx: Transaction, session_id: str, turns: FlowTurns, user_query: str
) -> FlowTurns:
    """Return the turns of a flow up to the last time that the user asked this in a row: that is no going on.

    A skill may report before the turns of its flow are appended, and a user may ask the same once more.
    """
    for _ in range(_MAX_TURNS):
        next_seq = await log_queries.next_of_user(tx, session_id, turns.last_seq)
        turn = None if next_seq is None else await log_queries.get(tx, session_id, next_seq)
        if turn is None or not are_near_identical(turn.content, user_query):
            break
        turns = FlowTurns(turns.first_seq or turn.seq, turn.seq)
    return turns


def is_decidable(
    tenant: str,
    session_id: ColumnElement[str],
    first_seq: ColumnElement[int],
    last_seq: ColumnElement[int],
) -> ColumnElement[bool]:
    """Return the condition that `judge` does not say WAITING, in a statement that has these columns."""
    began = log_queries.received_at_of(tenant, session_id, first_seq)
    ended = log_queries.received_at_of(tenant, session_id, last_seq)
    return or_(
        log_queries.is_continued(tenant, session_id, last_seq),
        feedback_queries.has_verdict(tenant, session_id, ended),
        feedback_queries.last_verdict_of(tenant, session_id, began) == SignalType.USER_THUMBS_UP,
    )


async def judge(tx: Transaction, session_id: str, turns: FlowTurns) -> Reason:
    """Return why a completed flow is promoted or is not."""
    ended = await log_queries.received_at(tx, session_id, turns.last_seq)
    verdict = await feedback_queries.last_verdict(tx, session_id, ended)
    if verdict is not None:
        return _REASONS[verdict]
    began = await log_queries.received_at(tx, session_id, turns.first_seq)
    on_the_way = await feedback_queries.last_verdict(tx, session_id, began)
    if on_the_way is SignalType.USER_THUMBS_UP:
        return Reason.SATISFIED
    next_seq = await log_queries.next_of_user(tx, session_id, turns.last_seq)
    if next_seq is None:
        return Reason.WAITING
    is_correction = await feedback_queries.is_correction(tx, session_id, next_seq)
    return Reason.CORRECTED if is_correction else Reason.CONTINUED
