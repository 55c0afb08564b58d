"""Pass `evaluate_sessions`: evaluate sessions that are idle: what worked, what failed, how good they were.

Each evaluation is stored by itself, as soon as it is made: a model that becomes slow or unavailable does
not take away those before.
"""

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.feedback.feedback_signal import FeedbackSignalDraft
from shared.conversation.sessions import queries as session_queries
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import session_evaluation
from shared.dreams.runs import evaluated_session_queries, recheck, unread_turns
from shared.dreams.runs.outcome import Outcome, PassSkipped
from shared.foundation import errors
from shared.jobs import queries as job_queries
from workers.passes import parts
from workers.passes.pass_context import LeaseLost, PassContext

DIRECTIVE = "session-evaluation"
_MAX_SESSIONS = 10
_MAX_TURNS_PER_SESSION = 100


async def run(context: PassContext) -> Outcome:
    """Ask the model about each session that is idle and has turns that were not evaluated."""
    turns_by_session, has_more = await _load_turns(context)
    if not turns_by_session:
        raise PassSkipped("there are no idle sessions that were not evaluated yet")
    evaluator = _Evaluator(context, await context.free_tokens(DIRECTIVE))
    session_parts = [[session_id] for session_id in turns_by_session]

    async def ask(part: list[str]) -> FeedbackSignalDraft:
        return await evaluator.evaluate(part[0], turns_by_session[part[0]])

    def inputs_of(session_ids: list[str]) -> dict[str, int]:
        return {session_id: turns_by_session[session_id][-1].seq for session_id in session_ids}

    answers = await parts.ask_in_parts(context, session_parts, ask, lambda items: inputs_of(list(items)))
    answers.require_usable()
    return Outcome(
        inputs=inputs_of(answers.items),
        proposed=[draft.model_dump(mode="json") for _, draft in answers.usable],
        rejections=answers.rejections(lambda part: {"kind": "session", "session": part[0]}),
        has_more=has_more or answers.has_more,
        shown_sessions=set(answers.items),
        shown_turns=[turn for session_id in answers.items for turn in turns_by_session[session_id]],
    )


async def _load_turns(context: PassContext) -> tuple[dict[str, list[Turn]], bool]:
    """Return the last turns of the sessions to evaluate, by session id, and whether there are more."""
    tenant, idle_seconds = context.run.tenant, context.resources.settings.session_idle_seconds
    async with context.resources.postgres.for_tenant(tenant) as tx:
        session_ids = await session_queries.list_idle(
            tx, context.run.scope, idle_seconds, _MAX_SESSIONS + 1, evaluated_session_queries.is_unevaluated()
        )
        turns_by_session = {
            session_id: await turn_queries.list_last(tx, session_id, _MAX_TURNS_PER_SESSION)
            for session_id in session_ids[:_MAX_SESSIONS]
        }
    with_turns = {session_id: turns for session_id, turns in turns_by_session.items() if turns}
    return with_turns, len(session_ids) > _MAX_SESSIONS


class _Evaluator:
    """Evaluates one session after the other."""

    def __init__(self, context: PassContext, max_tokens: int) -> None:
        self._context = context
        self._max_tokens = max_tokens

    async def evaluate(self, session_id: str, turns: list[Turn]) -> FeedbackSignalDraft:
        """Return the evaluation of a session, which is stored by then unless the run is dry."""
        shown_turns = unread_turns.last_fitting(turns, self._max_tokens) or turns[-1:]
        try:
            draft = await self._ask(shown_turns)
        except errors.InvalidModelReply:
            await self._store(session_id, shown_turns, None)
            raise
        covered = {"first_seq": shown_turns[0].seq, "seq": shown_turns[-1].seq}
        await self._store(session_id, shown_turns, draft.model_copy(update=covered))
        return draft

    async def _ask(self, turns: list[Turn]) -> FeedbackSignalDraft:
        """Ask about turns, and about the later half of them while the answer is cut off."""
        for _ in range(parts.MAX_HALVINGS):
            try:
                return await self._ask_once(turns)
            except errors.CutOffReply:
                if len(turns) == 1:
                    raise
                turns = turns[len(turns) // 2 :]
        return await self._ask_once(turns)

    async def _ask_once(self, turns: list[Turn]) -> FeedbackSignalDraft:
        turns_text = unread_turns.render_turns(turns, self._max_tokens)
        reply = await self._context.ask(DIRECTIVE, turns_text)
        return session_evaluation.parse(reply.text).signal()

    async def _store(
        self, session_id: str, shown_turns: list[Turn], draft: FeedbackSignalDraft | None
    ) -> None:
        """Store an evaluation, or that there was no usable reply, if the claim on the job is valid.

        Of turns that were edited or deleted while the model was asked, nothing is stored: they stay due.
        """
        context = self._context
        if context.run.dry_run:
            return
        tenant, lease = context.run.tenant, context.resources.settings.dream_lease
        async with context.resources.postgres.for_tenant(tenant) as tx:
            if not await job_queries.extend_lease(tx, context.job, lease):
                raise LeaseLost
            await session_queries.lock_existing(tx, [session_id])
            if not await recheck.are_unchanged(tx, shown_turns):
                return
            seq = shown_turns[-1].seq
            if draft is None:
                await evaluated_session_queries.mark_refused(tx, session_id, seq)
                return
            await evaluated_session_queries.mark_evaluated(tx, session_id, seq)
            await feedback_queries.insert_for_session_id(tx, session_id, draft)
