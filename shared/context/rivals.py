"""Memories that contest each other come together: whichever was recalled, both are shown, the newer first."""

from collections.abc import Mapping, Sequence

from shared.foundation.scope import Scope
from shared.memory.longterm import read
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.memory_result import MemoryResult
from shared.platform.resources import Resources


async def with_rivals(
    resources: Resources, scope: Scope, results: Sequence[MemoryResult]
) -> list[MemoryResult]:
    """Return results with the rivals that were not recalled with them. Raises errors.Unavailable."""
    found = {result.memory.id for result in results}
    missing = {id_ for result in results for id_ in result.memory.contested_with} - found
    rivals = await read.list_visible(resources, scope, sorted(missing)) if missing else []
    return together(results, {memory.id: memory for memory in rivals})


def together(results: Sequence[MemoryResult], rivals: Mapping[str, Memory]) -> list[MemoryResult]:
    """Return results with each contested one beside its rivals, at the first place, the newest first."""
    by_id = {result.memory.id: result for result in results}
    by_id |= {id_: MemoryResult.unscored(memory) for id_, memory in rivals.items()}
    ordered: dict[str, MemoryResult] = {}
    for result in results:
        group = [result, *(by_id[id_] for id_ in result.memory.contested_with if id_ in by_id)]
        for member in sorted(group, key=lambda item: item.memory.at, reverse=True):
            ordered.setdefault(member.memory.id, member)
    return list(ordered.values())
