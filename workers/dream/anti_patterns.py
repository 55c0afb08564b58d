"""Anti-patterns: from what users had to correct, learn what not to do again, and what to do instead (DR5)."""

from datetime import datetime

from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.feedback_signal import Signal, SignalType
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import anti_patterns
from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs import unread_turns
from shared.dreams.runs.outcome import Creation, Nothing, Outcome
from shared.foundation.categories import is_anti_pattern
from shared.foundation.prompt_safety import one_line
from shared.memory.longterm import new_rows, scope_queries
from shared.memory.longterm.memory import Entry
from workers.dream.pass_context import Night

DIRECTIVE = "anti-patterns"
_TURNS = 60


async def dream(night: Night) -> Outcome:
    """Ask about sessions with corrections that came since this pass last ended."""
    corrections, known, turns = await _read(night)
    if not corrections:
        raise Nothing("nobody has corrected anything since the last time")
    reply = await night.ask(DIRECTIVE, _told(corrections, known, turns))
    found = anti_patterns.parse(reply.text)
    accepted, rejections = anti_patterns.checked(found, known)
    sessions = {signal.session_id for signal in corrections}
    return Outcome(
        inputs={"signals": [signal.id for signal in corrections]},
        proposed=[one.content for one in found],
        rejections=[{"code": r.code, "detail": r.detail, **r.item} for r in rejections],
        creations=[
            Creation(
                new_rows.row_from_learned_draft(one.draft, tuple(s for s in one.session_ids if s in sessions))
            )
            for one in accepted
        ],
        turns=[(one.session_id, one.seq) for one in turns],
    )


async def _read(night: Night) -> tuple[list[Signal], list[Entry], list[Turn]]:
    settings, scope = night.resources.settings, night.run.scope
    async with night.resources.postgres.tenant(scope.tenant) as connection:
        since = await dream_queries.last_end(connection, scope, night.name)
        signals = await feedback_report.recent(
            connection, scope, days=settings.dream_feedback_days, limit=settings.dream_feedback
        )
        corrections = [one for one in signals if _is_new_correction(one, since)]
        entries = await scope_queries.of_scope(connection, scope) if corrections else []
        turns: list[Turn] = []
        for session_id in dict.fromkeys(one.session_id for one in corrections):
            turns += await turn_queries.last(connection, scope.tenant, session_id, _TURNS)
    known = [entry for entry in entries if is_anti_pattern(entry.category, entry.tags)]
    return corrections, known, turns


def _is_new_correction(signal: Signal, since: datetime | None) -> bool:
    return signal.type is SignalType.CORRECTION and (since is None or signal.created_at > since)


def _told(corrections: list[Signal], known: list[Entry], turns: list[Turn]) -> str:
    said = [f'- session {one.session_id}: "{one_line(one.detail or one.summary)}"' for one in corrections]
    there = [f"- {one_line(entry.content)}" for entry in known] or ["- none"]
    return "\n".join(["Corrections:", *said, "", "Known already:", *there, "", unread_turns.as_text(turns)])
