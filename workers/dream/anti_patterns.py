"""Pass `mine_anti_patterns`: learn from users' corrections what not to do again, and what to do instead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shared.conversation.feedback import judge
from shared.conversation.feedback.feedback_signal import FeedbackSignal
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import anti_patterns
from shared.dreams.passes.anti_patterns import AntiPattern
from shared.dreams.runs import unread_signal_queries, unread_turns
from shared.dreams.runs.outcome import NewMemory, Outcome, PassSkipped
from shared.foundation import prompt_size
from shared.foundation.categories import is_anti_pattern
from shared.foundation.origin import Origin, Trust
from shared.foundation.prompt_safety import single_line
from shared.memory.longterm import new_rows, scope_queries, sources
from shared.memory.longterm.memory import Memory, Source
from workers.passes import parts
from workers.passes.parts import Answers
from workers.passes.pass_context import PassContext

DIRECTIVE = "anti-patterns"
_MAX_TURNS_PER_SESSION = 60
_MAX_NAMED_SIGNALS = 50


@dataclass(frozen=True, slots=True)
class _CorrectedSession:
    """The unread corrections of one session and its last turns."""

    id: str
    corrections: list[FeedbackSignal]
    turns: list[Turn]


async def run(context: PassContext) -> Outcome:
    """Ask the model about the sessions with corrections that this pass has not read."""
    await judge.judge_doubtful(context.resources, context.run.scope, context.ask, context.free_tokens)
    sessions, has_more, existing = await _load_inputs(context)
    if not sessions:
        raise PassSkipped("there are no corrections since the last run of this pass")
    max_tokens = await context.free_tokens(DIRECTIVE) // 2
    existing_lines = prompt_size.fitting((f"- {single_line(item.content)}" for item in existing), max_tokens)

    async def ask(part: list[_CorrectedSession]) -> list[AntiPattern]:
        reply = await context.ask(DIRECTIVE, _prompt_text(part, existing_lines, max_tokens))
        return anti_patterns.parse(reply.text)

    shown_sessions = [replace(item, turns=_fitting_turns(item, max_tokens)) for item in sessions]
    session_parts = prompt_size.split(shown_sessions, _tokens_of, max_tokens)
    answers = await parts.ask_in_parts(context, session_parts, ask, _inputs_of)
    answers.require_usable()
    outcome = _outcome(answers, existing)
    outcome.rejections += answers.rejections(_name_part)
    outcome.has_more = has_more or answers.has_more
    return outcome


def _outcome(answers: Answers[_CorrectedSession, list[AntiPattern]], existing: list[Memory]) -> Outcome:
    proposed = [anti_pattern for _, found in answers.usable for anti_pattern in found]
    accepted, rejections = anti_patterns.check_new(proposed, existing)
    sessions = {session.id: session for session in answers.items}
    return Outcome(
        inputs=_inputs_of(answers.items),
        proposed=[anti_pattern.content for anti_pattern in proposed],
        rejections=[rejection.to_json() for rejection in rejections],
        creations=[_new_memory(anti_pattern, sessions) for anti_pattern in accepted],
        turns=[(turn.session_id, turn.seq) for session in answers.items for turn in session.turns],
        read_signal_ids=[signal.id for session in answers.items for signal in session.corrections],
        shown_memories={memory.id for memory in existing},
        shown_sessions=set(sessions),
        shown_turns=[turn for session in answers.items for turn in session.turns],
        shown_signals=[signal for session in answers.items for signal in session.corrections],
    )


async def _load_inputs(context: PassContext) -> tuple[list[_CorrectedSession], bool, list[Memory]]:
    """Return the sessions with unread corrections, whether there are more, and the existing anti-patterns."""
    settings, scope = context.resources.settings, context.run.scope
    limit = settings.dream_max_signals
    async with context.resources.postgres.for_tenant(scope.tenant) as tx:
        corrections = await unread_signal_queries.list_unread_corrections(
            tx, scope, context.name, days=settings.dream_signal_days, limit=limit + 1
        )
        memories = await scope_queries.list_scope(tx, scope) if corrections else []
        sessions = [
            _CorrectedSession(
                session_id,
                [signal for signal in corrections[:limit] if signal.session_id == session_id],
                await turn_queries.list_last(tx, session_id, _MAX_TURNS_PER_SESSION),
            )
            for session_id in dict.fromkeys(signal.session_id for signal in corrections[:limit])
        ]
    existing = [memory for memory in memories if is_anti_pattern(memory.category, memory.tags)]
    return sessions, len(corrections) > limit, existing


def _inputs_of(sessions: Sequence[_CorrectedSession]) -> dict[str, Any]:
    return {
        "signals": [signal.id for session in sessions for signal in session.corrections],
        "turns": [turn.record_id for session in sessions for turn in session.turns],
    }


def _name_part(sessions: Sequence[_CorrectedSession]) -> dict[str, Any]:
    ids = [signal.id for session in sessions for signal in session.corrections]
    return {"kind": "signals", "ids": ids[:_MAX_NAMED_SIGNALS]}


def _tokens_of(session: _CorrectedSession) -> int:
    corrections = map(prompt_size.tokens_of, map(_correction_line, session.corrections))
    return sum(corrections) + sum(map(unread_turns.tokens_of_turn, session.turns))


def _fitting_turns(session: _CorrectedSession, max_tokens: int) -> list[Turn]:
    """Return the last turns of a session that fit into half of a prompt."""
    turns = unread_turns.last_fitting(session.turns, max_tokens // 2)
    return turns or session.turns[-1:]


def _correction_line(signal: FeedbackSignal) -> str:
    return f'- session {signal.session_id}: "{single_line(signal.detail or signal.summary)}"'


def _prompt_text(sessions: Sequence[_CorrectedSession], existing_lines: list[str], max_tokens: int) -> str:
    correction_lines = [_correction_line(signal) for session in sessions for signal in session.corrections]
    turns = [turn for session in sessions for turn in session.turns]
    lists = ["Corrections:", *correction_lines, "", "Known already:", *(existing_lines or ["- none"])]
    return "\n".join([*lists, "", unread_turns.render_turns(turns, max_tokens // 2)])


def _new_memory(anti_pattern: AntiPattern, sessions: Mapping[str, _CorrectedSession]) -> NewMemory:
    """Return the memory to create. Its sources are the corrections in its sessions, if they were shown."""
    named = [sessions[session_id] for session_id in anti_pattern.session_ids if session_id in sessions]
    found = [(signal.session_id, signal.seq) for session in named for signal in session.corrections]
    in_turns = sources.from_turns((session_id, seq) for session_id, seq in found if seq is not None)
    reported_in = dict.fromkeys(session_id for session_id, seq in found if seq is None)
    reported = [Source(session_id=session_id) for session_id in reported_in]
    # A correction is what a user said, trusted as such, or what a key reported.
    origin = Origin.derived([Trust.USER])
    return NewMemory(new_rows.row_from_learned_draft(anti_pattern.draft, origin, [*in_turns, *reported]))
