"""Compact a final memory that is too long for a context: it is rewritten, and decided about, as a note is.

What was imported, merged or saved as it is may be long and is not enriched. It becomes several focused
memories if each of them may be stored, and the original is archived, as their evidence. Otherwise it stays,
with the reason, and is not tried again. The caller's labels stay.
"""

from collections.abc import Sequence

from shared.foundation import errors
from shared.foundation.stages import MemoryState
from shared.memory.longterm import labels
from shared.memory.longterm.memory import Memory, MemoryDraft


class NotCompacted(errors.LociError):
    """A rewriting that is no compaction: nothing, or a text that is too long as well."""


def is_oversized(memory: Memory, max_chars: int) -> bool:
    """Tell whether a memory is to be compacted. One that another has replaced keeps saying by which."""
    is_final = memory.state is MemoryState.FINAL and memory.failure_reason is None
    is_fixed = memory.key is not None or bool(memory.superseded_by)
    return is_final and not is_fixed and len(memory.content) > max_chars


def compacted(memory: Memory, drafts: Sequence[MemoryDraft], max_chars: int) -> list[MemoryDraft]:
    """Return the drafts with the labels of the memory that they replace. Raise NotCompacted for a reason."""
    if not drafts:
        raise NotCompacted("too long, but the model found nothing in it")
    if any(len(draft.content) > max_chars for draft in drafts):
        raise NotCompacted("too long, and so is its rewriting")
    return [
        draft.model_copy(
            update={
                "category": memory.category or draft.category,
                "tags": tuple(labels.join_tags(memory.tags, draft.tags)),
                "importance": memory.importance,
            }
        )
        for draft in drafts
    ]
