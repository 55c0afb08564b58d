"""Anti-patterns: from what users had to correct, learn what not to do again, and what to do instead (DR5)."""

from datetime import datetime

from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.feedback_signal import FeedbackSignal, SignalType
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import anti_patterns
from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs import unread_turns
from shared.dreams.runs.outcome import NewMemory, Outcome, PassSkipped
from shared.foundation.categories import is_anti_pattern
from shared.foundation.prompt_safety import single_line
from shared.memory.longterm import new_rows, scope_queries
from shared.memory.longterm.memory import Memory
from workers.dream.pass_context import PassContext

DIRECTIVE = "anti-patterns"
_TURNS = 60


async def run(context: PassContext) -> Outcome:
    """Ask about sessions with corrections that came since this pass last ended."""
    corrections, known, turns = await _read(context)
    if not corrections:
        raise PassSkipped("nobody has corrected anything since the last time")
    reply = await context.ask(DIRECTIVE, _told(corrections, known, turns))
    found = anti_patterns.parse(reply.text)
    accepted, rejections = anti_patterns.checked(found, known)
    sessions = {signal.session_id for signal in corrections}
    return Outcome(
        inputs={"signals": [signal.id for signal in corrections]},
        proposed=[one.content for one in found],
        rejections=[{"code": r.code, "detail": r.detail, **r.item} for r in rejections],
        creations=[
            NewMemory(
                new_rows.row_from_learned_draft(one.draft, tuple(s for s in one.session_ids if s in sessions))
            )
            for one in accepted
        ],
        turns=[(one.session_id, one.seq) for one in turns],
    )


async def _read(night: PassContext) -> tuple[list[FeedbackSignal], list[Memory], list[Turn]]:
    settings, scope = night.resources.settings, night.run.scope
    async with night.resources.postgres.for_tenant(scope.tenant) as connection:
        since = await dream_queries.last_finished_at(connection, scope, night.name)
        signals = await feedback_report.recent(
            connection, scope, days=settings.dream_signal_days, limit=settings.dream_max_signals
        )
        corrections = [one for one in signals if _is_new_correction(one, since)]
        entries = await scope_queries.list_scope(connection, scope) if corrections else []
        turns: list[Turn] = []
        for session_id in dict.fromkeys(one.session_id for one in corrections):
            turns += await turn_queries.list_last(connection, scope.tenant, session_id, _TURNS)
    known = [entry for entry in entries if is_anti_pattern(entry.category, entry.tags)]
    return corrections, known, turns


def _is_new_correction(signal: FeedbackSignal, since: datetime | None) -> bool:
    return signal.type is SignalType.CORRECTION and (since is None or signal.created_at > since)


def _told(corrections: list[FeedbackSignal], known: list[Memory], turns: list[Turn]) -> str:
    said = [f'- session {one.session_id}: "{single_line(one.detail or one.summary)}"' for one in corrections]
    there = [f"- {single_line(entry.content)}" for entry in known] or ["- none"]
    return "\n".join(
        ["Corrections:", *said, "", "Known already:", *there, "", unread_turns.render_turns(turns)]
    )
