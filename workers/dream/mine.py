"""Anti-patterns: from what users had to correct, learn what not to do again, and what to do instead (DR5)."""

from datetime import datetime

from shared.categories import is_anti_pattern
from shared.conversation import store as conversation
from shared.conversation.record import Turn
from shared.dreams import antipattern, log, store
from shared.dreams import entries as entries_of
from shared.dreams.outcome import Creation, Nothing, Outcome
from shared.feedback import signal as feedback
from shared.feedback.record import Signal, SignalType
from shared.hygiene import one_line
from shared.longterm import rows
from shared.longterm.record import Entry
from workers.dream.night import Night

DIRECTIVE = "anti-patterns"
_TURNS = 60


async def dream(night: Night) -> Outcome:
    """Ask about sessions with corrections that came since this pass last ended."""
    corrections, known, turns = await _read(night)
    if not corrections:
        raise Nothing("nobody has corrected anything since the last time")
    reply = await night.ask(DIRECTIVE, _told(corrections, known, turns))
    found = antipattern.parse(reply.text)
    accepted, rejections = antipattern.checked(found, known)
    sessions = {signal.session_id for signal in corrections}
    return Outcome(
        inputs={"signals": [signal.id for signal in corrections]},
        proposed=[one.content for one in found],
        rejections=[{"code": r.code, "detail": r.detail, **r.item} for r in rejections],
        creations=[
            Creation(
                rows.row_from_learned_draft(one.draft, tuple(s for s in one.session_ids if s in sessions))
            )
            for one in accepted
        ],
        turns=[(one.session_id, one.seq) for one in turns],
    )


async def _read(night: Night) -> tuple[list[Signal], list[Entry], list[Turn]]:
    settings, scope = night.resources.settings, night.run.scope
    async with night.resources.postgres.tenant(scope.tenant) as connection:
        since = await store.last_end(connection, scope, night.name)
        signals = await feedback.recent(
            connection, scope, days=settings.dream_feedback_days, limit=settings.dream_feedback
        )
        corrections = [one for one in signals if _is_new_correction(one, since)]
        entries = await entries_of.of_scope(connection, scope) if corrections else []
        turns: list[Turn] = []
        for session_id in dict.fromkeys(one.session_id for one in corrections):
            turns += await conversation.last(connection, scope.tenant, session_id, _TURNS)
    known = [entry for entry in entries if is_anti_pattern(entry.category, entry.tags)]
    return corrections, known, turns


def _is_new_correction(signal: Signal, since: datetime | None) -> bool:
    return signal.type is SignalType.CORRECTION and (since is None or signal.created_at > since)


def _told(corrections: list[Signal], known: list[Entry], turns: list[Turn]) -> str:
    said = [f'- session {one.session_id}: "{one_line(one.detail or one.summary)}"' for one in corrections]
    there = [f"- {one_line(entry.content)}" for entry in known] or ["- none"]
    return "\n".join(["Corrections:", *said, "", "Known already:", *there, "", log.as_text(turns)])
