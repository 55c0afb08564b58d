"""Pass `evaluate_sessions`: evaluate sessions that are idle: what worked, what failed, how good they were."""

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.feedback.feedback_signal import FeedbackSignalDraft
from shared.conversation.sessions import queries as session_queries
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import session_evaluation
from shared.dreams.runs import unread_turns
from shared.dreams.runs.outcome import Outcome, PassSkipped
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
    outcome.shown_sessions = set(turns_by_session)
    outcome.proposed = [draft.model_dump(mode="json") for _, draft in outcome.signals]
    return outcome


async def _load_turns(context: PassContext) -> dict[str, list[Turn]]:
    """Return the last turns of the sessions to evaluate, by session id."""
    tenant, idle_seconds = context.run.tenant, context.resources.settings.session_idle_seconds
    is_unevaluated = ~feedback_queries.session_is_evaluated()
    async with context.resources.postgres.for_tenant(tenant) as connection:
        session_ids = await session_queries.list_idle(
            connection, context.run.scope, idle_seconds, _MAX_SESSIONS, is_unevaluated
        )
        return {
            session_id: await turn_queries.list_last(connection, tenant, session_id, _MAX_TURNS_PER_SESSION)
            for session_id in session_ids
        }


async def _evaluate(context: PassContext, turns: list[Turn]) -> FeedbackSignalDraft:
    reply = await context.ask(DIRECTIVE, unread_turns.render_turns(turns))
    return session_evaluation.parse(reply.text).signal()
