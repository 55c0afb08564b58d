"""Episodes: what happened, from the conversation log, as stories with an outcome (DR12)."""

from shared.conversation.turns.turn import Turn
from shared.dreams.passes import episodes
from shared.dreams.passes.episodes import EpisodeUpdate
from shared.dreams.runs import unread_turns
from shared.dreams.runs.outcome import NewMemory, Outcome, PassSkipped
from shared.dreams.verification import merge
from shared.dreams.verification.plan import Replacement
from shared.foundation.categories import EPISODES, is_below
from shared.foundation.prompt_safety import single_line
from shared.memory.longterm import new_rows, scope_queries
from shared.memory.longterm.memory import Memory
from workers.dream.pass_context import PassContext

DIRECTIVE = "episodes"
_SHOWN = 100


async def run(context: PassContext) -> Outcome:
    """Ask about turns that this pass has not read; what went on continues its episode."""
    turns, known = await _read(context)
    if not turns:
        raise PassSkipped("nothing was said since the last time")
    found = episodes.parse((await context.ask(DIRECTIVE, _told(turns, known))).text)
    shown = {entry.id: entry for entry in known}
    continued, rejections = episodes.checked(found.continued, shown)
    sessions = {turn.session_id for turn in turns}
    told = [(one, tuple(s for s in one.session_ids if s in sessions)) for one in found.new]
    return Outcome(
        inputs={"turns": [turn.record_id for turn in turns]},
        proposed=[*(one.content for one in found.new), *(one.content for one in found.continued)],
        rejections=[{"code": r.code, "detail": r.detail, **r.item} for r in rejections],
        creations=[
            *(NewMemory(new_rows.row_from_learned_draft(one.draft, there)) for one, there in told),
            *(_continued(one, shown[one.id]) for one in continued),
        ],
        turns=[(turn.session_id, turn.seq) for turn in turns],
    )


async def _read(night: PassContext) -> tuple[list[Turn], list[Memory]]:
    scope = night.run.scope
    async with night.resources.postgres.for_tenant(scope.tenant) as connection:
        limit = night.resources.settings.dream_max_turns
        turns = await unread_turns.list_unread(connection, scope, night.name, limit)
        entries = await scope_queries.list_scope(connection, scope) if turns else []
    return turns, [entry for entry in entries if is_below(EPISODES, entry.category)][:_SHOWN]


def _told(turns: list[Turn], known: list[Memory]) -> str:
    shown = [f"- [ID:{entry.id}] {single_line(entry.content)}" for entry in known] or ["- none"]
    return "\n".join(["Episodes so far:", *shown, "", unread_turns.render_turns(turns)])


def _continued(one: EpisodeUpdate, entry: Memory) -> NewMemory:
    anew = Replacement(one.content, entry.category, (), (entry.id,), one.importance)
    return NewMemory(merge.row_from_merge(merge.merged(anew, [entry])), (entry,))
