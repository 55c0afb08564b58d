"""The filters of searches and lists, for the index and for Postgres.

The index narrows and Postgres decides. Rows are filtered again when they are read, because a point may
be older than its row.
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
    """Return the index condition that corresponds to `categories.is_anti_pattern`."""
    return filters.any_of(
        [field_equals("category_prefixes", ANTI_PATTERNS), field_equals("tags", ANTI_PATTERN_TAG)]
    )


@dataclass(frozen=True, slots=True)
class MemoryFilters:
    """Filters that must all hold. Ranges are inclusive; without a state, live memories match."""

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
        """Return the conditions on points."""
        conditions = [
            *filters.scope_conditions(scope),
            *filters.contains_all("tags", self.tags),
            *filters.metadata_equals(self.metadata),
            *filters.in_range("created_at", self.created_after, self.created_before),
            *filters.in_range("occurred_at", self.occurred_after, self.occurred_before),
            field_equals("archived", self.state is MemoryState.ARCHIVED),
        ]
        if self.category:
            conditions.append(field_equals("category_prefixes", self.category))
        return conditions

    def to_sql(self, scope: Scope) -> list[ColumnElement[bool]]:
        """Return the conditions on rows of `memory`."""
        conditions = [visible_scope(memory, scope), *self._range_conditions(), self._state_condition()]
        if self.category is not None:
            is_below = memory.c.category.startswith(f"{self.category}/", autoescape=True)
            conditions.append(or_(memory.c.category == self.category, is_below))
        if self.tags:
            conditions.append(memory.c.tags.contains(list(self.tags)))
        if self.metadata:
            conditions.append(memory.c.metadata.contains(self.metadata))
        return conditions

    def _state_condition(self) -> ColumnElement[bool]:
        return memory.c.archived_at.is_(None) if self.state is None else memory.c.state == self.state

    def _range_conditions(self) -> list[ColumnElement[bool]]:
        bounds: list[tuple[Any, datetime | None, datetime | None]] = [
            (memory.c.created_at, self.created_after, self.created_before),
            (memory.c.occurred_at, self.occurred_after, self.occurred_before),
        ]
        conditions = []
        for column, after, before in bounds:
            if after is not None:
                conditions.append(column >= after)
            if before is not None:
                conditions.append(column <= before)
        return conditions
