"""Pass `infer_preferences`: the model marks where a user shows a preference; code counts across runs."""

from dataclasses import dataclass
from typing import Any

from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.feedback_signal import FeedbackSignal
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import preferences
from shared.dreams.passes.preferences import Evidence, Occurrence, PreferenceCount
from shared.dreams.runs import progress_queries, unread_turn_queries
from shared.dreams.runs.outcome import NewMemory, Outcome, PassSkipped
from shared.dreams.verification import similarity
from shared.foundation import prompt_size
from shared.foundation.categories import PREFERENCES, is_below
from shared.foundation.origin import Origin, Trust
from shared.foundation.prompt_safety import single_line
from shared.foundation.roles import Role
from shared.memory.longterm import new_rows, scope_queries, sources
from shared.memory.longterm.memory import Memory
from workers.passes import turn_parts
from workers.passes.parts import Answers
from workers.passes.pass_context import PassContext

DIRECTIVE = "pref-dream"
_MAX_SHOWN_PREFERENCES = 200


@dataclass(frozen=True, slots=True)
class _Inputs:
    turns: list[Turn]
    has_more: bool
    existing: list[Memory]
    counted: dict[str, list[Evidence]]
    signals: list[FeedbackSignal]

    @property
    def signal_lines(self) -> list[str]:
        """The signals as the model is shown them."""
        return [
            f"- [{signal.type}] session {signal.session_id}: {single_line(signal.detail or signal.summary)}"
            for signal in self.signals
        ]

    @property
    def session_ids(self) -> set[str]:
        """The sessions of everything that the model is shown: turns, signals, and keys counted before."""
        counted = {evidence.session_id for items in self.counted.values() for evidence in items}
        return counted | {turn.session_id for turn in self.turns} | {s.session_id for s in self.signals}


async def run(context: PassContext) -> Outcome:
    """Ask the model about turns that this pass has not read, and infer what was shown often enough."""
    inputs = await _load_inputs(context)
    if not any(map(_is_said_by_user, inputs.turns)):
        return _without_user_turns(inputs)
    max_tokens = await context.free_tokens(DIRECTIVE) // 2
    known_lines = _known_lines(inputs, max_tokens)

    async def ask(turns_text: str) -> list[Occurrence]:
        prompt_text = "\n".join([*known_lines, "", turns_text])
        return preferences.parse((await context.ask(DIRECTIVE, prompt_text)).text)

    answers = await turn_parts.ask_about_turns(context, inputs.turns, max_tokens, ask)
    answers.require_usable()
    outcome = _outcome(inputs, answers)
    outcome.rejections += answers.rejections(turn_parts.name_part)
    outcome.has_more = inputs.has_more or answers.has_more
    return outcome


def _without_user_turns(inputs: _Inputs) -> Outcome:
    """Let go of turns that show no preference, if they keep the pass from reading those after them."""
    if not inputs.has_more:
        raise PassSkipped("there are no turns of a user since the last run of this pass")
    read_inputs = turn_parts.inputs_of(inputs.turns)
    return Outcome(inputs=read_inputs, turns=turn_parts.turn_keys(inputs.turns), has_more=True)


def _outcome(inputs: _Inputs, answers: Answers[Turn, list[Occurrence]]) -> Outcome:
    """Return what follows from all parts together: preferences are counted over all of them."""
    occurrences: list[Occurrence] = []
    for part, proposed in answers.usable:
        # A model may name any turn, but only what a user said shows a preference of the user.
        user_turns = {(turn.session_id, turn.seq) for turn in part if _is_said_by_user(turn)}
        occurrences += preferences.with_read_turns(proposed, user_turns)
    due_counts = preferences.newly_due(inputs.counted, occurrences)
    new_counts, rejections = _without_existing(due_counts, inputs.existing)
    return Outcome(
        inputs=turn_parts.inputs_of(answers.items),
        proposed=[_to_json(occurrence) for _, proposed in answers.usable for occurrence in proposed],
        rejections=rejections,
        creations=[NewMemory(_memory_row(count), preference_key=count.key or None) for count in new_counts],
        turns=turn_parts.turn_keys(answers.items),
        occurrences=[row for occurrence in occurrences for row in _occurrence_rows(occurrence)],
        inferred_keys=[count.key for count in due_counts],
        shown_memories={memory.id for memory in inputs.existing},
        shown_sessions=inputs.session_ids,
        shown_turns=answers.items,
        shown_signals=inputs.signals,
    )


def _is_said_by_user(turn: Turn) -> bool:
    """Tell whether the user said a turn, and not a page that the user's turn repeats, as its caller says."""
    return turn.role is Role.USER and turn.origin.trust >= Trust.USER


async def _load_inputs(context: PassContext) -> _Inputs:
    settings, scope = context.resources.settings, context.run.scope
    async with context.resources.postgres.for_tenant(scope.tenant) as tx:
        turns, has_more = await unread_turn_queries.list_oldest_unread(
            tx, scope, context.name, settings.dream_max_turns
        )
        memories = await scope_queries.list_scope(tx, scope)
        counted = await progress_queries.list_evidence(tx, scope)
        signals = await feedback_report.recent(
            tx, scope, days=settings.dream_signal_days, limit=settings.dream_max_signals
        )
    existing = [memory for memory in memories if is_below(PREFERENCES, memory.category)]
    return _Inputs(turns, has_more, existing, counted, signals)


def _known_lines(inputs: _Inputs, max_tokens: int) -> list[str]:
    """Return what the model is shown beside the turns: each of three lists has a third of the room."""
    shown_memories = inputs.existing[:_MAX_SHOWN_PREFERENCES]
    existing = [f"- {single_line(memory.content)}" for memory in shown_memories]
    keys = [f"- {key}" for key in inputs.counted]
    lists = (("Known preferences:", existing), ("Keys seen before:", keys), ("Signals:", inputs.signal_lines))
    lines: list[str] = []
    for title, items in lists:
        lines += [title, *(prompt_size.fitting(items, max_tokens // 3) or ["- none"]), ""]
    return lines[:-1]


def _without_existing(
    due_counts: list[PreferenceCount], existing: list[Memory]
) -> tuple[list[PreferenceCount], list[dict[str, Any]]]:
    """Return the preferences that no existing memory says, and the rejections of the others."""
    existing_words = [similarity.words_of(memory.content) for memory in existing]
    new_counts: list[PreferenceCount] = []
    rejections: list[dict[str, Any]] = []
    for count in due_counts:
        words = similarity.words_of(count.occurrence.content)
        if any(similarity.words_are_similar(words, other) for other in existing_words):
            rejections.append({"code": "duplicate", "detail": "is known already", "key": count.key})
        else:
            new_counts.append(count)
    return new_counts, rejections


def _memory_row(count: PreferenceCount) -> dict[str, Any]:
    draft = preferences.to_draft(count)
    turn_keys = [(evidence.session_id, seq) for evidence in count.evidence for seq in evidence.seqs]
    # Only turns that users said, trusted as such, were counted (`_is_said_by_user`).
    return new_rows.row_from_learned_draft(draft, Origin.derived([Trust.USER]), sources.from_turns(turn_keys))


def _occurrence_rows(occurrence: Occurrence) -> list[dict[str, Any]]:
    """Return a row for each turn of an occurrence."""
    evidence = occurrence.evidence
    common = {
        "key": occurrence.key,
        "level": evidence.level,
        "session_id": evidence.session_id,
        "first_seq": min(evidence.seqs),
    }
    return [common | {"seq": seq} for seq in sorted(evidence.seqs)]


def _to_json(occurrence: Occurrence) -> dict[str, Any]:
    evidence = occurrence.evidence
    return {
        "key": occurrence.key,
        "level": evidence.level,
        "session": evidence.session_id,
        "seqs": sorted(evidence.seqs),
    }
