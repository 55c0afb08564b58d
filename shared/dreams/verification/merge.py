"""Compute the fields of a memory that replaces several others.

Times and counts of the sources add up: the merged memory has the earliest creation, the latest time last
seen, and the sum of all reinforcements. Of two dates on which something happened the earlier is kept;
`check` makes sure that the text names the other.

Nothing that protects a memory is lost. The importance is the highest of the sources,
`requires_user_permission` is kept, an anti-pattern stays one, and what users said themselves does not
become `inferred` because it is merged with a guess. A model may raise the importance, but not so far that
the memory can no longer be pruned: the text of a memory could ask for that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.dreams.verification import labels
from shared.dreams.verification.plan import Replacement
from shared.foundation import validation
from shared.foundation.categories import (
    ACTIVE_PLANS,
    ANTI_PATTERN_TAG,
    ANTI_PATTERNS,
    PREFERENCES,
    is_anti_pattern,
    is_below,
)
from shared.foundation.ids import new_record_id
from shared.foundation.origin import Origin, Trust, least
from shared.foundation.stages import MemoryState
from shared.memory.longterm import new_rows
from shared.memory.longterm.fingerprint import fingerprint
from shared.memory.longterm.labels import (
    INFERRED,
    PERMISSION,
    is_kind_of_its_own,
    join_tags,
    leading_labels,
    limited_importance,
    requires_permission,
)
from shared.memory.longterm.memory import MAX_REINFORCEMENT_COUNT, Memory, Source
from shared.search.text import indexed_text


@dataclass(frozen=True, slots=True)
class MergedFields:
    """The fields of a memory that replaces its sources."""

    content: str
    category: str | None
    tags: tuple[str, ...]
    metadata: dict[str, str]
    importance: float
    occurred_at: datetime | None
    valid_from: datetime | None
    created_at: datetime
    last_seen_at: datetime
    reinforcement_count: int
    sources: tuple[Source, ...]
    saved_without_source: bool
    derived_from: tuple[str, ...]
    trust: Trust


def merge_fields(replacement: Replacement, sources: Sequence[Memory]) -> MergedFields:
    """Return the fields of a replacement for `sources`, which are at least one memory, all of one scope."""
    are_inferred = all(_is_inferred(memory) for memory in sources)
    return MergedFields(
        content=replacement.content.strip(),
        category=_merge_category(replacement.category, sources, are_inferred=are_inferred),
        tags=_merge_tags(replacement.tags, sources, are_inferred=are_inferred),
        metadata=_merge_metadata(sources, are_inferred=are_inferred),
        importance=_merge_importance(replacement.importance, sources),
        occurred_at=min((memory.occurred_at for memory in sources if memory.occurred_at), default=None),
        # All of it is true once the last of them is.
        valid_from=max((memory.valid_from for memory in sources if memory.valid_from), default=None),
        created_at=min(memory.created_at for memory in sources),
        last_seen_at=max(memory.last_seen_at for memory in sources),
        reinforcement_count=min(
            sum(memory.reinforcement_count for memory in sources), MAX_REINFORCEMENT_COUNT
        ),
        sources=tuple(dict.fromkeys(source for memory in sources for source in memory.sources)),
        saved_without_source=any(memory.has_other_origin for memory in sources),
        derived_from=tuple(memory.id for memory in sources),
        trust=least(memory.origin.trust for memory in sources),
    )


def gives_unearned_label(fields: MergedFields, sources: Sequence[Memory]) -> bool:
    """Tell whether text of outside gets a label that leads agents, which another source brings.

    Taking the label away instead would unmake what a caller has marked, so such memories stay apart.
    """
    given = leading_labels(fields.category, fields.tags, fields.importance)
    outside = [memory for memory in sources if memory.origin.trust is Trust.OUTSIDE]
    return any(given - leading_labels(item.category, item.tags, item.importance) for item in outside)


def _is_inferred(memory: Memory) -> bool:
    return memory.metadata.get("source") == INFERRED


def _merge_category(proposed: str | None, sources: Sequence[Memory], *, are_inferred: bool) -> str | None:
    """Return the model's category, or that of the most reinforced source if the model may not set it.

    A model may not make or unmake an anti-pattern, make a preference or an active plan, or mark a stated fact
    as inferred.
    """
    category = validation.sanitize_category(proposed)
    warnings = [memory for memory in sources if is_anti_pattern(memory.category, memory.tags)]
    of_preference = any(is_below(PREFERENCES, memory.category) for memory in sources)
    if is_kind_of_its_own(category, of_warning=bool(warnings), of_preference=of_preference):
        category = None
    if (warnings and not is_below(ANTI_PATTERNS, category)) or is_below(ACTIVE_PLANS, category):
        category = None
    if not are_inferred and category is not None and category.endswith(f"/{INFERRED}"):
        category = None
    candidates = warnings or [memory for memory in sources if are_inferred or not _is_inferred(memory)]
    return category or _most_reinforced(candidates).category


def _most_reinforced(sources: Sequence[Memory]) -> Memory:
    return max(sources, key=lambda memory: (memory.reinforcement_count, memory.last_seen_at))


def _merge_tags(proposed: Iterable[str], sources: Sequence[Memory], *, are_inferred: bool) -> tuple[str, ...]:
    """Return the model's tags, then those of the sources. If there are too many, new tags are left out."""
    source_tags = tuple(dict.fromkeys(tag for memory in sources for tag in memory.tags))
    proposed_tags = labels.sanitize_tags(proposed)
    # These two tags change how a memory is treated: only the sources can pass them on, not the model.
    new_tags = [tag for tag in proposed_tags if tag not in {*source_tags, ANTI_PATTERN_TAG, INFERRED}]
    allowed_tags = {*source_tags, *new_tags[: max(0, validation.MAX_TAGS - len(source_tags))]}
    tags = tuple(dict.fromkeys([*(tag for tag in proposed_tags if tag in allowed_tags), *source_tags]))
    return tags if are_inferred else tuple(tag for tag in tags if tag != INFERRED)


def _merge_metadata(sources: Sequence[Memory], *, are_inferred: bool) -> dict[str, str]:
    """Return the union of the metadata. Where the sources differ, the newest one's value is kept."""
    by_age = sorted(sources, key=lambda memory: (memory.created_at, memory.id))
    metadata = {
        key: value
        for memory in by_age
        for key, value in memory.metadata.items()
        if are_inferred or (key, value) != ("source", INFERRED)
    }
    if any(needs_permission(memory) for memory in sources):
        metadata[PERMISSION] = "true"
    return metadata


def needs_permission(memory: Memory) -> bool:
    """Tell whether an agent needs the user's permission to act on a memory."""
    return requires_permission(memory.metadata)


def _merge_importance(proposed: float | None, sources: Sequence[Memory]) -> float:
    highest = max(memory.importance for memory in sources)
    return highest if proposed is None else max(highest, limited_importance(proposed))


def row_from_merge(fields: MergedFields) -> dict[str, Any]:
    """Return the row of a memory that replaces its sources."""
    return new_rows.row_with_columns(
        new_record_id(),
        Origin.derived([fields.trust]),
        content=fields.content,
        fingerprint=fingerprint(fields.content, fields.occurred_at),
        indexed_text=indexed_text.keyword_text(fields.content, category=fields.category, tags=fields.tags),
        state=MemoryState.FINAL,
        category=fields.category,
        tags=join_tags((), fields.tags),
        metadata=fields.metadata,
        importance=fields.importance,
        occurred_at=fields.occurred_at,
        valid_from=fields.valid_from,
        sources=[source.model_dump() for source in fields.sources],
        saved_without_source=fields.saved_without_source,
        derived_from=list(fields.derived_from),
        reinforcement_count=fields.reinforcement_count,
        created_at=fields.created_at,
        last_seen_at=fields.last_seen_at,
    )
