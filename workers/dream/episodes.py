"""Pass `extract_episodes`: take stories with an outcome from the conversation log."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shared.conversation.turns.turn import Turn
from shared.dreams.passes import episodes
from shared.dreams.passes.episodes import Episode, Episodes, EpisodeUpdate
from shared.dreams.runs import unread_turn_queries
from shared.dreams.runs.outcome import NewMemory, Outcome, PassSkipped
from shared.dreams.verification import merge
from shared.dreams.verification.plan import Replacement
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
from shared.foundation import prompt_size
from shared.foundation.categories import EPISODES, is_below
from shared.foundation.origin import Origin, Trust, least
from shared.foundation.prompt_safety import single_line
from shared.memory.longterm import new_rows, scope_queries, sources
from shared.memory.longterm.labels import leading_labels
from shared.memory.longterm.memory import Memory, Source
from workers.passes import turn_parts
from workers.passes.pass_context import PassContext

DIRECTIVE = "episodes"
_MAX_SHOWN_EPISODES = 100


async def run(context: PassContext) -> Outcome:
    """Ask the model about turns that this pass has not read: new episodes and updates of existing ones."""
    turns, has_more, existing = await _load_inputs(context)
    if not turns:
        raise PassSkipped("there are no turns since the last run of this pass")
    log = _EpisodeLog(existing)
    max_tokens = await context.free_tokens(DIRECTIVE) // 2

    async def ask(turns_text: str) -> Episodes:
        prompt_text = "\n".join([*log.prompt_lines(max_tokens), "", turns_text])
        found = episodes.parse((await context.ask(DIRECTIVE, prompt_text)).text)
        log.add(found)
        return found

    answers = await turn_parts.ask_about_turns(context, turns, max_tokens, ask)
    answers.require_usable()
    outcome = _outcome(answers.items, log)
    outcome.rejections += answers.rejections(turn_parts.name_part)
    outcome.has_more = has_more or answers.has_more
    return outcome


class _EpisodeLog:
    """The episodes that exist, and those that the parts before have found."""

    def __init__(self, existing: Sequence[Memory]) -> None:
        self.existing = {memory.id: memory for memory in existing}
        self.new: list[Episode] = []
        self.continued: list[EpisodeUpdate] = []

    def add(self, found: Episodes) -> None:
        self.new += found.new
        self.continued += found.continued

    def prompt_lines(self, max_tokens: int) -> list[str]:
        """Return what is known. An episode that was continued already is shown as it will be, without id."""
        continued = {update.id: update.content for update in self.continued}
        open_lines = [
            f"- [ID:{memory.id}] {single_line(memory.content)}"
            for memory in self.existing.values()
            if memory.id not in continued
        ]
        known = [*continued.values(), *(episode.content for episode in self.new)]
        lines = [*(f"- {single_line(content)}" for content in known), *open_lines]
        return ["Episodes so far:", *(prompt_size.fitting(lines, max_tokens) or ["- none"])]


def _outcome(turns: list[Turn], log: _EpisodeLog) -> Outcome:
    updates, rejections = episodes.check_updates(log.continued, log.existing)
    updates, untrusted = _without_untrusted(updates, log.existing, turns)
    return Outcome(
        inputs=turn_parts.inputs_of(turns),
        proposed=[
            *(episode.content for episode in log.new),
            *(update.content for update in log.continued),
        ],
        rejections=[rejection.to_json() for rejection in [*rejections, *untrusted]],
        creations=[
            *(_new_memory(episode, turns) for episode in log.new),
            *(_updated_memory(update, log.existing[update.id], turns) for update in updates),
        ],
        turns=turn_parts.turn_keys(turns),
        shown_memories=set(log.existing),
        shown_sessions={turn.session_id for turn in turns},
        shown_turns=turns,
    )


async def _load_inputs(context: PassContext) -> tuple[list[Turn], bool, list[Memory]]:
    """Return the unread turns, whether there are more than a pass reads, and the existing episodes."""
    scope, limit = context.run.scope, context.resources.settings.dream_max_turns
    async with context.resources.postgres.for_tenant(scope.tenant) as tx:
        turns, has_more = await unread_turn_queries.list_oldest_unread(tx, scope, context.name, limit)
        memories = await scope_queries.list_mergeable(tx, scope) if turns else []
    existing = [memory for memory in memories if is_below(EPISODES, memory.category)]
    return turns, has_more, existing[:_MAX_SHOWN_EPISODES]


def _without_untrusted(
    updates: Sequence[EpisodeUpdate], existing: Mapping[str, Memory], turns: Sequence[Turn]
) -> tuple[list[EpisodeUpdate], list[Rejection]]:
    """Return the updates, and rejections of those that give turns from outside a label of the episode."""
    accepted: list[EpisodeUpdate] = []
    rejections: list[Rejection] = []
    for update in updates:
        episode = existing[update.id]
        trust = least(turn.origin.trust for turn in _turns_of(update.session_ids, turns))
        if trust is Trust.OUTSIDE and leading_labels(episode.category, episode.tags, episode.importance):
            item = item_reference("continuation", (update.id,))
            detail = "would give turns from outside a label that only a caller gives them"
            rejections.append(Rejection(RejectionCode.UNTRUSTED, item, detail))
        else:
            accepted.append(update)
    return accepted, rejections


def _new_memory(episode: Episode, turns: Sequence[Turn]) -> NewMemory:
    """Return the memory to create. Its sources are the turns that it was taken from."""
    source_turns = _turns_of(episode.session_ids, turns)
    origin = Origin.derived(turn.origin.trust for turn in source_turns)
    return NewMemory(new_rows.row_from_learned_draft(episode.draft, origin, _sources(source_turns)))


def _updated_memory(update: EpisodeUpdate, episode: Memory, turns: Sequence[Turn]) -> NewMemory:
    replacement = Replacement(update.content, episode.category, (), (episode.id,), update.importance)
    fields = merge.merge_fields(replacement, [episode])
    source_turns = _turns_of(update.session_ids, turns)
    all_sources = tuple(dict.fromkeys([*fields.sources, *_sources(source_turns)]))
    trust = least([fields.trust, *(turn.origin.trust for turn in source_turns)])
    return NewMemory(merge.row_from_merge(replace(fields, sources=all_sources, trust=trust)), (episode,))


def _turns_of(session_ids: Sequence[str], turns: Sequence[Turn]) -> Sequence[Turn]:
    """Return the shown turns of the sessions that a model named, or all of them if it named none of these."""
    return [turn for turn in turns if turn.session_id in session_ids] or turns


def _sources(turns: Sequence[Turn]) -> list[Source]:
    return sources.from_turns((turn.session_id, turn.seq) for turn in turns)
