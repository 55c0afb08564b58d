"""What a search or list asks for, said once for the index and once for Postgres.

The index narrows, Postgres decides: rows are filtered again when they are read, so a point
that lags behind its row can't bring back what the row no longer is.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, or_

from shared.foundation import validation
from shared.foundation.categories import ANTI_PATTERN_TAG, ANTI_PATTERNS
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.infra.postgres import visible_scope
from shared.memory.longterm.table import memory
from shared.search.index import filters
from shared.search.index.filters import Condition, field_equals


def anti_patterns() -> Condition:
    """Return the condition, in the index's words, that `is_anti_pattern` states."""
    return filters.any_of(
        [field_equals("category_prefixes", ANTI_PATTERNS), field_equals("tags", ANTI_PATTERN_TAG)]
    )


@dataclass(frozen=True, slots=True)
class MemoryFilters:
    """Filters, all of which must hold; ranges are inclusive."""

    category: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    created_after: datetime | None = None
    created_before: datetime | None = None
    occurred_after: datetime | None = None
    occurred_before: datetime | None = None
    state: MemoryState | None = None

    def __post_init__(self) -> None:
        if self.category is not None:
            validation.check_category(self.category)
        for name in ("created_after", "created_before", "occurred_after", "occurred_before"):
            moment = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, validation.check_time(moment, name))

    def to_qdrant(self, scope: Scope) -> list[Condition]:
        """Return the conditions in the index's words."""
        wanted = [
            *filters.scope_conditions(scope),
            *filters.contains_all("tags", self.tags),
            *filters.metadata_equals(self.metadata),
            *filters.in_range("created_at", self.created_after, self.created_before),
            *filters.in_range("occurred_at", self.occurred_after, self.occurred_before),
            field_equals("archived", self.state is MemoryState.ARCHIVED),
        ]
        return [*wanted, field_equals("category_prefixes", self.category)] if self.category else wanted

    def to_sql(self, scope: Scope) -> list[ColumnElement[bool]]:
        """Return the conditions on rows of `entry`."""
        wanted = [visible_scope(memory, scope), *self._ranges(), *self._state()]
        if self.category is not None:
            below = memory.c.category.startswith(f"{self.category}/", autoescape=True)
            wanted.append(or_(memory.c.category == self.category, below))
        if self.tags:
            wanted.append(memory.c.tags.contains(list(self.tags)))
        if self.metadata:
            wanted.append(memory.c.metadata.contains(self.metadata))
        return wanted

    def _state(self) -> list[ColumnElement[bool]]:
        if self.state is None:
            return [memory.c.archived_at.is_(None)]
        return [memory.c.state == self.state]

    def _ranges(self) -> list[ColumnElement[bool]]:
        bounds: list[tuple[Any, datetime | None, datetime | None]] = [
            (memory.c.created_at, self.created_after, self.created_before),
            (memory.c.occurred_at, self.occurred_after, self.occurred_before),
        ]
        found = []
        for column, after, before in bounds:
            if after is not None:
                found.append(column >= after)
            if before is not None:
                found.append(column <= before)
        return found
