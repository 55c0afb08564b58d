"""Pass `extract_episodes`: take stories with an outcome from the conversation log."""

from shared.conversation.turns.turn import Turn
from shared.dreams.passes import episodes
from shared.dreams.passes.episodes import Episode, EpisodeUpdate
from shared.dreams.runs import unread_turn_queries, unread_turns
from shared.dreams.runs.outcome import NewMemory, Outcome, PassSkipped
from shared.dreams.verification import merge
from shared.dreams.verification.plan import Replacement
from shared.foundation.categories import EPISODES, is_below
from shared.foundation.prompt_safety import single_line
from shared.memory.longterm import new_rows, scope_queries
from shared.memory.longterm.memory import Memory
from workers.dream.pass_context import PassContext

DIRECTIVE = "episodes"
_MAX_SHOWN_EPISODES = 100


async def run(context: PassContext) -> Outcome:
    """Ask the model about turns that this pass has not read: new episodes and updates of existing ones."""
    turns, existing = await _load_inputs(context)
    if not turns:
        raise PassSkipped("there are no turns since the last run of this pass")
    proposed = episodes.parse((await context.ask(DIRECTIVE, _prompt_text(turns, existing))).text)
    by_id = {memory.id: memory for memory in existing}
    updates, rejections = episodes.check_updates(proposed.continued, by_id)
    session_ids = {turn.session_id for turn in turns}
    return Outcome(
        inputs={"turns": [turn.record_id for turn in turns]},
        proposed=[
            *(episode.content for episode in proposed.new),
            *(update.content for update in proposed.continued),
        ],
        rejections=[
            {"code": rejection.code, "detail": rejection.detail, **rejection.item} for rejection in rejections
        ],
        creations=[
            *(_new_memory(episode, session_ids) for episode in proposed.new),
            *(_updated_memory(update, by_id[update.id]) for update in updates),
        ],
        turns=[(turn.session_id, turn.seq) for turn in turns],
        shown_memories={memory.id for memory in existing},
        shown_sessions=session_ids,
    )


async def _load_inputs(context: PassContext) -> tuple[list[Turn], list[Memory]]:
    """Return the unread turns and the existing episodes."""
    scope, limit = context.run.scope, context.resources.settings.dream_max_turns
    async with context.resources.postgres.for_tenant(scope.tenant) as connection:
        turns = await unread_turn_queries.list_unread(connection, scope, context.name, limit)
        memories = await scope_queries.list_scope(connection, scope) if turns else []
    existing = [memory for memory in memories if is_below(EPISODES, memory.category)]
    return turns, existing[:_MAX_SHOWN_EPISODES]


def _prompt_text(turns: list[Turn], existing: list[Memory]) -> str:
    lines = [f"- [ID:{memory.id}] {single_line(memory.content)}" for memory in existing] or ["- none"]
    return "\n".join(["Episodes so far:", *lines, "", unread_turns.render_turns(turns)])


def _new_memory(episode: Episode, session_ids: set[str]) -> NewMemory:
    """Return the memory to create, with those of its sessions that the model was shown."""
    named_ids = tuple(session_id for session_id in episode.session_ids if session_id in session_ids)
    return NewMemory(new_rows.row_from_learned_draft(episode.draft, named_ids))


def _updated_memory(update: EpisodeUpdate, episode: Memory) -> NewMemory:
    replacement = Replacement(update.content, episode.category, (), (episode.id,), update.importance)
    return NewMemory(merge.row_from_merge(merge.merge_fields(replacement, [episode])), (episode,))
