"""Choose which findings of patrols and which outlines of subagents a context lists."""

from collections.abc import Sequence

from shared.context import blocks
from shared.context.types import Block
from shared.memory.working.best_match import best_matches
from shared.memory.working.working_entry import WorkingEntryInfo
from shared.platform.resources import Resources


async def patrol_block(
    resources: Resources, tenant: str, infos: Sequence[WorkingEntryInfo], message: str
) -> Block | None:
    """Return the block of findings: all, or of too many those that fit the message and the newest.

    The best matches take up to half of the places.
    """
    limit = resources.settings.context_max_patrol_entries
    newest_first = _newest_first(infos)
    if len(infos) > limit:
        best = await best_matches(resources, tenant, message, infos, "patrol", limit // 2)
        best_keys = {info.key for info in best}
        others = [info for info in newest_first if info.key not in best_keys]
        newest_first = _newest_first([*best, *others[: limit - len(best)]])
    return blocks.patrol(newest_first, len(infos) - len(newest_first))


async def subagent_block(
    resources: Resources, tenant: str, outlines: Sequence[WorkingEntryInfo], message: str
) -> Block | None:
    """Return the block of the newest outline and, of all others, the one that fits the message best."""
    chosen, others = _newest_first(outlines)[:1], _newest_first(outlines)[1:]
    if others:
        chosen += await best_matches(resources, tenant, message, others, "subagent", 1)
    return blocks.subagents(chosen, len(outlines) - len(chosen))


def _newest_first(infos: Sequence[WorkingEntryInfo]) -> list[WorkingEntryInfo]:
    return sorted(infos, key=lambda info: info.stored_at, reverse=True)
