"""Pass `evaluate_sessions`: evaluate sessions that are idle: what worked, what failed, how good they were."""

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
from shared.infra.postgres import exact_scope, seconds
from workers.dream.pass_context import PassContext

DIRECTIVE = "session-evaluation"
_MAX_SESSIONS = 10
_MAX_TURNS_PER_SESSION = 100


async def run(context: PassContext) -> Outcome:
    """Ask the model about each session that is idle and was not evaluated since its last turn."""
    turns_by_session = await _load_turns(context)
    if not turns_by_session:
        raise PassSkipped("there are no idle sessions that were not evaluated yet")
    outcome = Outcome(
        inputs={session_id: turns[-1].seq for session_id, turns in turns_by_session.items() if turns}
    )
    for session_id, turns in turns_by_session.items():
        outcome.signals.append((session_id, await _evaluate(context, turns)))
    outcome.proposed = [draft.model_dump(mode="json") for _, draft in outcome.signals]
    return outcome


async def _load_turns(context: PassContext) -> dict[str, list[Turn]]:
    """Return the last turns of the sessions to evaluate, by session id."""
    tenant, idle_seconds = context.run.tenant, context.resources.settings.session_idle_seconds
    async with context.resources.postgres.for_tenant(tenant) as connection:
        session_ids = await _list_idle_sessions(connection, context.run.scope, idle_seconds)
        return {
            session_id: await turn_queries.list_last(connection, tenant, session_id, _MAX_TURNS_PER_SESSION)
            for session_id in session_ids
        }


async def _evaluate(context: PassContext, turns: list[Turn]) -> FeedbackSignalDraft:
    reply = await context.ask(DIRECTIVE, unread_turns.render_turns(turns))
    return session_evaluation.parse(reply.text).signal()


async def _list_idle_sessions(connection: AsyncConnection, scope: Scope, idle_seconds: float) -> list[str]:
    """Return the ids of the scope's longest idle sessions that were not evaluated since their last turn."""
    is_evaluated = exists(
        select(feedback_signal.c.id).where(
            feedback_signal.c.tenant == session.c.tenant,
            feedback_signal.c.session_id == session.c.id,
            feedback_signal.c.type == SignalType.SESSION_SUMMARY,
            feedback_signal.c.created_at > session.c.last_turn_at,
        )
    )
    is_idle = (session.c.last_turn_at < func.now() - seconds(idle_seconds), session.c.last_seq > 1)
    statement = (
        select(session.c.id)
        .where(exact_scope(session, scope), *is_idle, ~is_evaluated)
        .order_by(session.c.last_turn_at)
        .limit(_MAX_SESSIONS)
    )
    return list((await connection.scalars(statement)).all())
