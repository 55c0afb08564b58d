"""Judge sessions that have come to rest: what went well, what failed, how good it was (FB2)."""

from sqlalchemy import exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.feedback.feedback_signal import SignalDraft, SignalType
from shared.conversation.feedback.table import signal
from shared.conversation.sessions.table import session
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import session_evaluation
from shared.dreams.runs import unread_turns
from shared.dreams.runs.outcome import Nothing, Outcome
from shared.foundation.scope import Scope
from shared.infra.postgres import owned_by
from workers.dream.pass_context import Night

_SESSIONS = 10
_TURNS = 100


async def dream(night: Night) -> Outcome:
    """Ask the model about each session that is idle and has not been judged since its last turn."""
    async with night.resources.postgres.tenant(night.run.tenant) as connection:
        resting = await _resting(connection, night.run.scope, night.resources.settings.session_idle)
        turns = {one: await turn_queries.last(connection, night.run.tenant, one, _TURNS) for one in resting}
    if not resting:
        raise Nothing("no session has come to rest since it was last judged")
    outcome = Outcome(inputs={name: said[-1].seq for name, said in turns.items() if said})
    for session_id, said in turns.items():
        outcome.signals.append((session_id, await _judged(night, said)))
    outcome.proposed = [draft.model_dump(mode="json") for _, draft in outcome.signals]
    return outcome


async def _judged(night: Night, turns: list[Turn]) -> SignalDraft:
    reply = await night.ask("session-evaluation", unread_turns.as_text(turns))
    return session_evaluation.parse(reply.text).signal()


async def _resting(connection: AsyncConnection, scope: Scope, idle: float) -> list[str]:
    judged = exists(
        select(signal.c.id).where(
            signal.c.tenant == session.c.tenant,
            signal.c.session_id == session.c.id,
            signal.c.type == SignalType.SESSION_SUMMARY,
            signal.c.created_at > session.c.last_turn_at,
        )
    )
    pause = func.make_interval(0, 0, 0, 0, 0, 0, idle)
    same_user = session.c.user_id.is_not_distinct_from(scope.user_id)
    mine = (owned_by(session, scope.tenant), session.c.agent_id == scope.agent_id, same_user)
    at_rest = (session.c.last_turn_at < func.now() - pause, session.c.last_seq > 1, ~judged)
    statement = select(session.c.id).where(*mine, *at_rest).order_by(session.c.last_turn_at).limit(_SESSIONS)
    return list((await connection.scalars(statement)).all())
