"""Pass `mine_anti_patterns`: learn from users' corrections what not to do again, and what to do instead."""

from datetime import datetime

from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.feedback_signal import FeedbackSignal, SignalType
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import anti_patterns
from shared.dreams.passes.anti_patterns import AntiPattern
from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs import unread_turns
from shared.dreams.runs.outcome import NewMemory, Outcome, PassSkipped
from shared.foundation.categories import is_anti_pattern
from shared.foundation.prompt_safety import single_line
from shared.memory.longterm import new_rows, scope_queries
from shared.memory.longterm.memory import Memory
from workers.dream.pass_context import PassContext

DIRECTIVE = "anti-patterns"
_MAX_TURNS_PER_SESSION = 60


async def run(context: PassContext) -> Outcome:
    """Ask the model about the sessions with corrections that were reported since this pass last ended."""
    corrections, existing, turns = await _load_inputs(context)
    if not corrections:
        raise PassSkipped("there are no corrections since the last run of this pass")
    reply = await context.ask(DIRECTIVE, _prompt_text(corrections, existing, turns))
    proposed = anti_patterns.parse(reply.text)
    accepted, rejections = anti_patterns.check_new(proposed, existing)
    session_ids = {signal.session_id for signal in corrections}
    return Outcome(
        inputs={"signals": [signal.id for signal in corrections]},
        proposed=[anti_pattern.content for anti_pattern in proposed],
        rejections=[
            {"code": rejection.code, "detail": rejection.detail, **rejection.item} for rejection in rejections
        ],
        creations=[_new_memory(anti_pattern, session_ids) for anti_pattern in accepted],
        turns=[(turn.session_id, turn.seq) for turn in turns],
        shown_memories={memory.id for memory in existing},
        shown_sessions=session_ids,
    )


async def _load_inputs(context: PassContext) -> tuple[list[FeedbackSignal], list[Memory], list[Turn]]:
    """Return the new corrections, the existing anti-patterns, and the last turns of the sessions."""
    settings, scope = context.resources.settings, context.run.scope
    async with context.resources.postgres.for_tenant(scope.tenant) as connection:
        since = await dream_queries.last_finished_at(connection, scope, context.name)
        signals = await feedback_report.recent(
            connection, scope, days=settings.dream_signal_days, limit=settings.dream_max_signals
        )
        corrections = [signal for signal in signals if _is_new_correction(signal, since)]
        memories = await scope_queries.list_scope(connection, scope) if corrections else []
        turns: list[Turn] = []
        for session_id in dict.fromkeys(signal.session_id for signal in corrections):
            turns += await turn_queries.list_last(
                connection, scope.tenant, session_id, _MAX_TURNS_PER_SESSION
            )
    existing = [memory for memory in memories if is_anti_pattern(memory.category, memory.tags)]
    return corrections, existing, turns


def _is_new_correction(signal: FeedbackSignal, since: datetime | None) -> bool:
    return signal.type is SignalType.CORRECTION and (since is None or signal.created_at > since)


def _new_memory(anti_pattern: AntiPattern, session_ids: set[str]) -> NewMemory:
    """Return the memory to create, with those of its sessions that the model was shown."""
    named_ids = tuple(session_id for session_id in anti_pattern.session_ids if session_id in session_ids)
    return NewMemory(new_rows.row_from_learned_draft(anti_pattern.draft, named_ids))


def _prompt_text(corrections: list[FeedbackSignal], existing: list[Memory], turns: list[Turn]) -> str:
    correction_lines = [
        f'- session {signal.session_id}: "{single_line(signal.detail or signal.summary)}"'
        for signal in corrections
    ]
    existing_lines = [f"- {single_line(memory.content)}" for memory in existing] or ["- none"]
    lists = ["Corrections:", *correction_lines, "", "Known already:", *existing_lines]
    return "\n".join([*lists, "", unread_turns.render_turns(turns)])
