"""Judge sessions that have come to rest: what went well, what failed, how good it was (FB2)."""

from sqlalchemy import exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.feedback.feedback_signal import FeedbackSignalDraft, SignalType
from shared.conversation.feedback.table import feedback_signal
from shared.conversation.sessions.table import session
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import session_evaluation
from shared.dreams.runs import unread_turns
from shared.dreams.runs.outcome import Outcome, PassSkipped
from shared.foundation.scope import Scope
from shared.infra.postgres import tenant_filter
from workers.dream.pass_context import PassContext

_SESSIONS = 10
_TURNS = 100


async def run(context: PassContext) -> Outcome:
    """Ask the model about each session that is idle and has not been judged since its last turn."""
    async with context.resources.postgres.for_tenant(context.run.tenant) as connection:
        resting = await _resting(
            connection, context.run.scope, context.resources.settings.session_idle_seconds
        )
        turns = {
            one: await turn_queries.list_last(connection, context.run.tenant, one, _TURNS) for one in resting
        }
    if not resting:
        raise PassSkipped("no session has come to rest since it was last judged")
    outcome = Outcome(inputs={name: said[-1].seq for name, said in turns.items() if said})
    for session_id, said in turns.items():
        outcome.signals.append((session_id, await _judged(context, said)))
    outcome.proposed = [draft.model_dump(mode="json") for _, draft in outcome.signals]
    return outcome


async def _judged(night: PassContext, turns: list[Turn]) -> FeedbackSignalDraft:
    reply = await night.ask("session-evaluation", unread_turns.render_turns(turns))
    return session_evaluation.parse(reply.text).signal()


async def _resting(connection: AsyncConnection, scope: Scope, idle: float) -> list[str]:
    judged = exists(
        select(feedback_signal.c.id).where(
            feedback_signal.c.tenant == session.c.tenant,
            feedback_signal.c.session_id == session.c.id,
            feedback_signal.c.type == SignalType.SESSION_SUMMARY,
            feedback_signal.c.created_at > session.c.last_turn_at,
        )
    )
    pause = func.make_interval(0, 0, 0, 0, 0, 0, idle)
    same_user = session.c.user_id.is_not_distinct_from(scope.user_id)
    mine = (tenant_filter(session, scope.tenant), session.c.agent_id == scope.agent_id, same_user)
    at_rest = (session.c.last_turn_at < func.now() - pause, session.c.last_seq > 1, ~judged)
    statement = select(session.c.id).where(*mine, *at_rest).order_by(session.c.last_turn_at).limit(_SESSIONS)
    return list((await connection.scalars(statement)).all())
