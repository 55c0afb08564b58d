"""Preferences: the model marks where a user shows one; code counts across runs and decides (DR6)."""

from dataclasses import dataclass
from typing import Any

from shared.conversation.feedback import report as feedback_report
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import preferences
from shared.dreams.passes.preferences import Evidence, Occurrence, PreferenceCount
from shared.dreams.runs import progress_queries, unread_turns
from shared.dreams.runs.outcome import NewMemory, Outcome, PassSkipped
from shared.dreams.verification import similarity
from shared.foundation.categories import PREFERENCES, is_below
from shared.foundation.prompt_safety import single_line
from shared.foundation.roles import Role
from shared.memory.longterm import new_rows, scope_queries
from shared.memory.longterm.memory import Memory
from workers.dream.pass_context import PassContext

DIRECTIVE = "pref-dream"


@dataclass(frozen=True, slots=True)
class _Read:
    turns: list[Turn]
    known: list[Memory]
    counted: dict[str, list[Evidence]]
    signals: list[str]


async def run(context: PassContext) -> Outcome:
    """Ask about turns that this pass has not read, and infer what has been shown often enough."""
    read = await _read(context)
    if not any(turn.role is Role.USER for turn in read.turns):
        raise PassSkipped("no user has said anything since the last time")
    marked = preferences.parse((await context.ask(DIRECTIVE, _told(read))).text)
    # Only what a user said counts: a model may name any turn, and an agent's words are not a wish.
    said = {(turn.session_id, turn.seq) for turn in read.turns if turn.role is Role.USER}
    attested = preferences.with_read_turns(marked, said)
    due = preferences.newly_due(read.counted, attested)
    new, rejections = _new(due, read.known)
    return Outcome(
        inputs={"turns": [turn.record_id for turn in read.turns]},
        proposed=[_shown(one) for one in marked],
        rejections=rejections,
        creations=[NewMemory(_row(tally)) for tally in new],
        turns=[(turn.session_id, turn.seq) for turn in read.turns],
        occurrences=[row for one in attested for row in _rows(one)],
        inferred_keys=[tally.key for tally in due],
    )


async def _read(night: PassContext) -> _Read:
    settings, scope = night.resources.settings, night.run.scope
    async with night.resources.postgres.for_tenant(scope.tenant) as connection:
        turns = await unread_turns.list_unread(connection, scope, night.name, settings.dream_max_turns)
        entries = await scope_queries.list_scope(connection, scope)
        counted = await progress_queries.occurrences(connection, scope)
        recent = await feedback_report.recent(
            connection, scope, days=settings.dream_signal_days, limit=settings.dream_max_signals
        )
    signals = [f"- [{s.type}] session {s.session_id}: {single_line(s.detail or s.summary)}" for s in recent]
    known = [entry for entry in entries if is_below(PREFERENCES, entry.category)]
    return _Read(turns, known, counted, signals)


def _told(read: _Read) -> str:
    known = [f"- {single_line(entry.content)}" for entry in read.known[:200]] or ["- none"]
    keys = [f"- {key}" for key in read.counted] or ["- none"]
    signals = read.signals or ["- none"]
    lists = ["Known preferences:", *known, "", "Keys seen before:", *keys, "", "Signals:", *signals]
    return "\n".join([*lists, "", unread_turns.render_turns(read.turns)])


def _new(
    due: list[PreferenceCount], known: list[Memory]
) -> tuple[list[PreferenceCount], list[dict[str, Any]]]:
    """Leave out what an entry says already."""
    said = [similarity.words_of(entry.content) for entry in known]
    new: list[PreferenceCount] = []
    rejections: list[dict[str, Any]] = []
    for tally in due:
        words = similarity.words_of(tally.occurrence.content)
        if any(similarity.words_are_similar(words, other) for other in said):
            rejections.append({"code": "duplicate", "detail": "is known already", "key": tally.key})
        else:
            new.append(tally)
    return new, rejections


def _row(tally: PreferenceCount) -> dict[str, Any]:
    draft = preferences.to_draft(tally)
    return new_rows.row_from_learned_draft(draft, (tally.occurrence.sighting.session_id,))


def _rows(one: Occurrence) -> list[dict[str, Any]]:
    place = one.sighting
    common = {
        "key": one.key,
        "level": place.level,
        "session_id": place.session_id,
        "first_seq": min(place.seqs),
    }
    return [common | {"seq": seq} for seq in sorted(place.seqs)]


def _shown(one: Occurrence) -> dict[str, Any]:
    place = one.sighting
    return {"key": one.key, "level": place.level, "session": place.session_id, "seqs": sorted(place.seqs)}
