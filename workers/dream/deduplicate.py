"""Pass `deduplicate`: merge memories that differ only in punctuation, which needs no model.

A save already merges memories that differ only in case and spacing. This pass also ignores punctuation,
within one scope and category, and only between memories of the same times.
"""

import unicodedata
from dataclasses import replace

from shared.dreams.runs.outcome import NewMemory, Outcome, PassSkipped
from shared.dreams.verification import fidelity, merge
from shared.dreams.verification.plan import Replacement
from shared.foundation import validation
from shared.foundation.categories import ACTIVE_PLANS, is_below
from shared.memory.longterm import scope_queries
from shared.memory.longterm.memory import Memory
from workers.passes.pass_context import PassContext

_PUNCTUATION = ".,;:!?\u2026\"'()\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u3002\u3001\uff01\uff1f"


async def run(context: PassContext) -> Outcome:
    """Decide which memories to merge."""
    async with context.resources.postgres.for_tenant(context.run.tenant) as tx:
        memories = await scope_queries.list_mergeable(tx, context.run.scope)
    groups = [group for group in _group(memories) if len(group) > 1 and _is_faithful(group)]
    if not groups:
        raise PassSkipped("no memories differ only in punctuation")
    inputs = {memory.id: memory.version for group in groups for memory in group}
    creations = [_merge(group) for group in groups]
    return Outcome(inputs=inputs, creations=creations, shown_memories=set(inputs))


def _group(memories: list[Memory]) -> list[list[Memory]]:
    """Group equal memories, the most reinforced and then the oldest first: its wording is kept."""
    groups: dict[tuple[object, ...], list[Memory]] = {}
    for memory in sorted(
        memories, key=lambda memory: (-memory.reinforcement_count, memory.created_at, memory.id)
    ):
        if not is_below(ACTIVE_PLANS, memory.category):
            times = (memory.occurred_at, memory.valid_from)
            key = (_without_punctuation(memory.content), memory.category, *times)
            groups.setdefault(key, []).append(memory)
    return list(groups.values())


def _without_punctuation(text: str) -> str:
    """Return a text without punctuation at the edges of its words.

    Other marks are kept, because they carry meaning: C# is not C, and -5 is not 5.
    """
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return " ".join(filter(None, (word.strip(_PUNCTUATION) for word in words)))


def _is_faithful(group: list[Memory]) -> bool:
    """Tell whether nothing is lost: punctuation may carry meaning, and metadata may not fit in one memory."""
    keys = {key for memory in group for key in memory.metadata}
    fits = len(keys) <= validation.MAX_METADATA_PAIRS
    return fits and all(fidelity.lost_content(memory.content, group) is None for memory in group)


def _merge(group: list[Memory]) -> NewMemory:
    ids = tuple(memory.id for memory in group)
    replacement = Replacement(group[0].content, group[0].category, (), ids, None)
    # All say the same words, so the most trusted one vouches for them, as if it had been saved again.
    trust = max(memory.origin.trust for memory in group)
    fields = replace(merge.merge_fields(replacement, group), trust=trust)
    return NewMemory(merge.row_from_merge(fields), tuple(group))
