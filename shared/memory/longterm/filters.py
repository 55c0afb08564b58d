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
from shared.foundation.stages import State
from shared.memory.longterm.queries import visible
from shared.memory.longterm.table import entry
from shared.search.index import filters
from shared.search.index.filters import Condition, matches


def anti_patterns() -> Condition:
    """Return the condition, in the index's words, that `is_anti_pattern` states."""
    return filters.any_of([matches("categories", ANTI_PATTERNS), matches("tags", ANTI_PATTERN_TAG)])


@dataclass(frozen=True, slots=True)
class Criteria:
    """Filters, all of which must hold; ranges are inclusive."""

    category: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    created_after: datetime | None = None
    created_before: datetime | None = None
    occurred_after: datetime | None = None
    occurred_before: datetime | None = None
    state: State | None = None

    def __post_init__(self) -> None:
        if self.category is not None:
            validation.check_category(self.category)
        for name in ("created_after", "created_before", "occurred_after", "occurred_before"):
            moment = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, validation.check_time(moment, name))

    def for_index(self, scope: Scope) -> list[Condition]:
        """Return the conditions in the index's words."""
        wanted = [
            *filters.of_scope(scope),
            *filters.all_of("tags", self.tags),
            *filters.pairs(self.metadata),
            *filters.between("at", self.created_after, self.created_before),
            *filters.between("occurred_at", self.occurred_after, self.occurred_before),
            matches("archived", self.state is State.ARCHIVED),
        ]
        return [*wanted, matches("categories", self.category)] if self.category else wanted

    def for_rows(self, scope: Scope) -> list[ColumnElement[bool]]:
        """Return the conditions on rows of `entry`."""
        wanted = [visible(scope), *self._ranges(), *self._state()]
        if self.category is not None:
            below = entry.c.category.startswith(f"{self.category}/", autoescape=True)
            wanted.append(or_(entry.c.category == self.category, below))
        if self.tags:
            wanted.append(entry.c.tags.contains(list(self.tags)))
        if self.metadata:
            wanted.append(entry.c.metadata.contains(self.metadata))
        return wanted

    def _state(self) -> list[ColumnElement[bool]]:
        if self.state is None:
            return [entry.c.archived_at.is_(None)]
        return [entry.c.state == self.state]

    def _ranges(self) -> list[ColumnElement[bool]]:
        bounds: list[tuple[Any, datetime | None, datetime | None]] = [
            (entry.c.created_at, self.created_after, self.created_before),
            (entry.c.occurred_at, self.occurred_after, self.occurred_before),
        ]
        found = []
        for column, after, before in bounds:
            if after is not None:
                found.append(column >= after)
            if before is not None:
                found.append(column <= before)
        return found
