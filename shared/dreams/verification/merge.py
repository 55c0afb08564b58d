"""One entry out of several: which of their fields it has.

What the sources say about time adds up: created with the first, last seen with the last, seen as
often as all together. Of two dates on which something happened the earlier stays, as of two
creations; `check` sees to it that the text names the other. Nothing that protects an entry is lost:
importance is the highest, `requires_user_permission` sticks, an anti-pattern stays one, and what
users said themselves is not `inferred` for being merged with a guess. A model may raise importance,
but not to where entries can no longer be pruned: a text inside a memory could ask it to.
"""

import secrets
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
    is_anti_pattern,
    is_below,
)
from shared.foundation.stages import MemoryState
from shared.memory.longterm import new_rows
from shared.memory.longterm.fingerprint import fingerprint
from shared.memory.longterm.memory import Memory, Source
from shared.search.text import indexed_text

PERMISSION = "requires_user_permission"
INFERRED = "inferred"
HIGHEST_RAISE = 0.75
"""How important a model can make an entry; from 0.8 on it could not be pruned any more."""


@dataclass(frozen=True, slots=True)
class MergedFields:
    """The fields of an entry that takes the place of its sources."""

    content: str
    category: str | None
    tags: tuple[str, ...]
    metadata: dict[str, str]
    importance: float
    occurred_at: datetime | None
    created_at: datetime
    last_seen_at: datetime
    reinforcement_count: int
    sources: tuple[Source, ...]
    derived_from: tuple[str, ...]
    agent_id: str
    user_id: str | None


def merged(replacement: Replacement, sources: Sequence[Memory]) -> MergedFields:
    """Return the fields of a replacement for `sources`: at least one entry, all of one scope."""
    guessed = all(_is_inferred(entry) for entry in sources)
    return MergedFields(
        content=replacement.content.strip(),
        category=_category(replacement.category, sources, guessed=guessed),
        tags=_tags(replacement.tags, sources, guessed=guessed),
        metadata=_metadata(sources, guessed=guessed),
        importance=_importance(replacement.importance, sources),
        occurred_at=min((e.occurred_at for e in sources if e.occurred_at), default=None),
        created_at=min(entry.created_at for entry in sources),
        last_seen_at=max(entry.last_seen_at for entry in sources),
        reinforcement_count=sum(entry.reinforcement_count for entry in sources),
        sources=tuple(dict.fromkeys(source for entry in sources for source in entry.sources)),
        derived_from=tuple(entry.id for entry in sources),
        agent_id=sources[0].agent_id,
        user_id=sources[0].user_id,
    )


def _is_inferred(entry: Memory) -> bool:
    return entry.metadata.get("source") == INFERRED


def _category(offered: str | None, sources: Sequence[Memory], *, guessed: bool) -> str | None:
    """Return the model's category, unless it would give a rank, or take one away, that is not its to give."""
    category = validation.sanitize_category(offered)
    warnings = [entry for entry in sources if is_anti_pattern(entry.category, entry.tags)]
    if is_below(ANTI_PATTERNS, category) != bool(warnings) or is_below(ACTIVE_PLANS, category):
        category = None
    if not guessed and category is not None and category.endswith(f"/{INFERRED}"):
        category = None
    heirs = warnings or [entry for entry in sources if guessed or not _is_inferred(entry)]
    return category or _most_reinforced(heirs).category


def _most_reinforced(sources: Sequence[Memory]) -> Memory:
    return max(sources, key=lambda entry: (entry.reinforcement_count, entry.last_seen_at))


def _tags(offered: Iterable[str], sources: Sequence[Memory], *, guessed: bool) -> tuple[str, ...]:
    """Return the model's tags first, as far as those of the sources leave room for them."""
    kept = tuple(dict.fromkeys(tag for entry in sources for tag in entry.tags))
    # Marks that mean more than a subject are the sources' to hand on, not the model's to give.
    new = [tag for tag in labels.sanitize_tags(offered) if tag not in {*kept, ANTI_PATTERN_TAG, INFERRED}]
    room = new[: max(0, validation.MAX_TAGS - len(kept))]
    named = [tag for tag in labels.sanitize_tags(offered) if tag in {*kept, *room}]
    tags = tuple(dict.fromkeys([*named, *kept]))
    return tags if guessed else tuple(tag for tag in tags if tag != INFERRED)


def _metadata(sources: Sequence[Memory], *, guessed: bool) -> dict[str, str]:
    """Return the union; where the sources differ, the newest is right."""
    union: dict[str, str] = {}
    for entry in sorted(sources, key=lambda entry: (entry.created_at, entry.id)):
        union |= entry.metadata
    if any(needs_permission(entry) for entry in sources):
        union[PERMISSION] = "true"
    if not guessed and union.get("source") == INFERRED:
        told = [e.metadata.get("source") for e in sources if not _is_inferred(e)]
        union = {key: value for key, value in union.items() if key != "source"}
        union |= {"source": told[-1]} if told[-1:] and told[-1] is not None else {}
    return union


def needs_permission(entry: Memory) -> bool:
    """Tell whether acting on an entry needs the user's word."""
    return entry.metadata.get(PERMISSION, "").strip().lower() == "true"


def _importance(offered: float | None, sources: Sequence[Memory]) -> float:
    highest = max(entry.importance for entry in sources)
    return max(highest, min(offered or 0.0, HIGHEST_RAISE))


def row_from_merge(fields: MergedFields) -> dict[str, Any]:
    """Return the row of an entry that takes the place of its sources."""
    return new_rows.row_of(
        secrets.token_hex(6),
        content=fields.content,
        fingerprint=fingerprint(fields.content, fields.occurred_at),
        indexed_text=indexed_text.keyword_text(fields.content, category=fields.category, tags=fields.tags),
        state=MemoryState.FINAL,
        category=fields.category,
        tags=list(fields.tags),
        metadata=fields.metadata,
        importance=fields.importance,
        occurred_at=fields.occurred_at,
        sources=[source.model_dump() for source in fields.sources],
        derived_from=list(fields.derived_from),
        reinforcement_count=fields.reinforcement_count,
        created_at=fields.created_at,
        last_seen_at=fields.last_seen_at,
    )
