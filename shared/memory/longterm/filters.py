"""The filters of searches and lists, for the index and for Postgres.

The index narrows and Postgres decides. Rows are filtered again when they are read, because a point may
be older than its row.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, or_

from shared.foundation import errors, validation
from shared.foundation.categories import ANTI_PATTERN_TAG, ANTI_PATTERNS
from shared.foundation.filter_expression import Expression, Operator, comparisons
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.infra import filter_sql
from shared.infra.postgres import visible_scope
from shared.memory.longterm import index_filter, validity
from shared.memory.longterm.filter_fields import column_of
from shared.memory.longterm.table import IS_UNEXPIRED, memory
from shared.search.index import filters
from shared.search.index.filters import Condition, field_equals, field_is_any


def anti_patterns() -> Condition:
    """Return the index condition that corresponds to `categories.is_anti_pattern`."""
    return filters.any_of(
        [field_equals("category_prefixes", ANTI_PATTERNS), field_equals("tags", ANTI_PATTERN_TAG)]
    )


@dataclass(frozen=True, slots=True)
class MemoryFilters:
    """Filters that must all hold. Ranges are inclusive.

    Without a state, live memories match; the archived ones do if the expression asks for their state. Only
    memories that are valid at `as_of` match, by default now; with `any_validity` the others do, too. What has
    expired never matches.
    """

    category: str | None = None
    tags: tuple[str, ...] = ()
    # Memories of any of these categories match, and common memories of these agents besides the scope's own.
    categories: tuple[str, ...] = ()
    sharing_agents: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    created_after: datetime | None = None
    created_before: datetime | None = None
    occurred_after: datetime | None = None
    occurred_before: datetime | None = None
    state: MemoryState | None = None
    expression: Expression | None = None
    as_of: datetime | None = None
    any_validity: bool = False

    def __post_init__(self) -> None:
        if self.category is not None:
            validation.check_category(self.category)
        for name in ("created_after", "created_before", "occurred_after", "occurred_before"):
            moment = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, validation.check_time(moment, name))
        if self.as_of is not None:
            if self.any_validity:
                raise errors.Invalid("as_of", "must not be given beside validity")
            object.__setattr__(self, "as_of", validation.clamp_time(self.as_of))

    def to_qdrant(self, scope: Scope) -> list[Condition]:
        """Return conditions that the points of all matching memories meet, and those of few others."""
        conditions = [
            *self._visible_points(scope),
            *filters.contains_all("tags", self.tags),
            *filters.metadata_equals(self.metadata),
            *filters.in_range("created_at", self.created_after, self.created_before),
            *filters.in_range("occurred_at", self.occurred_after, self.occurred_before),
        ]
        if self.state is not None or not self._names_archived():
            conditions.append(field_equals("archived", self.state is MemoryState.ARCHIVED))
        if self.category:
            conditions.append(field_equals("category_prefixes", self.category))
        if self.categories:
            conditions.append(field_is_any("category_prefixes", self.categories))
        if not self.any_validity:
            conditions.append(validity.may_be_valid(self.as_of, datetime.now(UTC)))
        selected = None if self.expression is None else index_filter.to_index(self.expression)
        return conditions if selected is None else [*conditions, selected]

    def evidence_to_qdrant(self, scope: Scope) -> list[Condition]:
        """Return conditions that the points of all evidence meet that the scope sees; none: it is not asked.

        The other filters are for the memories that the evidence leads to. A point without the field is older
        than the field.
        """
        if self.state is MemoryState.ARCHIVED or self._names_archived():
            return []
        is_evidence = [field_equals("archived", True), filters.none_of([field_equals("evidence", False)])]
        return [*self._visible_points(scope), *is_evidence]

    @property
    def is_known_to_index(self) -> bool:
        """Whether the index knows every condition, so that its best hits are likely to match."""
        is_expression_known = self.expression is None or index_filter.is_known(self.expression)
        return self.state in (None, MemoryState.ARCHIVED) and is_expression_known

    def _visible_points(self, scope: Scope) -> list[Condition]:
        own = filters.scope_conditions(scope)
        if not self.sharing_agents:
            return own
        shared = [field_is_any("agent_id", self.sharing_agents), field_equals("user_id", filters.NO_USER)]
        return [filters.any_of([filters.all_of(own), filters.all_of(shared)])]

    def to_sql(self, scope: Scope) -> list[ColumnElement[bool]]:
        """Return the conditions on rows of `memory`."""
        return [*self.visible_to_sql(scope), *self.of_fields()]

    def visible_to_sql(self, scope: Scope) -> list[ColumnElement[bool]]:
        """Return the conditions on rows of `memory` that the scope sees them, whatever they say."""
        return [self._visible_rows(scope), IS_UNEXPIRED]

    def of_fields(self) -> list[ColumnElement[bool]]:
        """Return the conditions on rows of `memory`, whosever they are."""
        conditions = [*self._range_conditions(), *self._state_conditions()]
        if self.category is not None:
            conditions.append(_is_in_category(self.category))
        if self.categories:
            conditions.append(or_(*map(_is_in_category, self.categories)))
        if self.tags:
            conditions.append(memory.c.tags.contains(list(self.tags)))
        if self.metadata:
            conditions.append(memory.c.metadata.contains(self.metadata))
        if not self.any_validity:
            conditions.append(validity.is_valid(self.as_of))
        if self.expression is not None:
            conditions.append(filter_sql.to_sql(self.expression, column_of))
        return conditions

    def _visible_rows(self, scope: Scope) -> ColumnElement[bool]:
        own = visible_scope(memory, scope)
        if not self.sharing_agents:
            return own
        shared = [visible_scope(memory, Scope(scope.tenant, agent)) for agent in self.sharing_agents]
        return or_(own, *shared)

    def _state_conditions(self) -> list[ColumnElement[bool]]:
        if self.state is not None:
            return [memory.c.state == self.state]
        return [] if self._names_archived() else [memory.c.archived_at.is_(None)]

    def _names_archived(self) -> bool:
        """Return whether the expression asks for archived memories: by name, with `eq` or `in`."""
        return self.expression is not None and any(
            comparison.field == "state"
            and comparison.op in (Operator.EQ, Operator.IN)
            and not comparison.is_negated
            and MemoryState.ARCHIVED in comparison.values
            for comparison in comparisons(self.expression)
        )

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


def _is_in_category(category: str) -> ColumnElement[bool]:
    is_below = memory.c.category.startswith(f"{category}/", autoescape=True)
    return or_(memory.c.category == category, is_below)
