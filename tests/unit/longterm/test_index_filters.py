"""Each filter is one of the index too. A search widens until it has enough, but should rarely need to."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.memory.longterm import index_document
from shared.memory.longterm.filters import MemoryFilters
from shared.search.index.filters import field_equals
from tests.unit.context import builders

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_SCOPE = Scope("t")


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"category": "trips"}, "category_prefixes"),
        ({"tags": ("sea",)}, "tags"),
        ({"metadata": {"ship": "Aurora"}}, "metadata"),
        ({"created_after": _NOON}, "created_at"),
        ({"created_before": _NOON}, "created_at"),
        ({"occurred_after": _NOON}, "occurred_at"),
        ({"occurred_before": _NOON}, "occurred_at"),
    ],
)
def test_a_filter_is_asked_of_the_index(fields: dict[str, Any], key: str) -> None:
    without = MemoryFilters(any_validity=True).to_qdrant(_SCOPE)
    conditions = [c for c in MemoryFilters(**fields, any_validity=True).to_qdrant(_SCOPE) if c not in without]
    assert [condition.get("key") for condition in conditions] == [key]


@pytest.mark.parametrize("state", [None, *MemoryState])
def test_the_index_is_asked_for_archived_memories_or_for_live_ones(state: MemoryState | None) -> None:
    is_archived = state is MemoryState.ARCHIVED
    assert field_equals("archived", is_archived) in MemoryFilters(state=state).to_qdrant(_SCOPE)
    assert field_equals("archived", not is_archived) not in MemoryFilters(state=state).to_qdrant(_SCOPE)


def test_the_root_of_a_category_is_in_the_index_in_small_letters_too() -> None:
    memory = builders.entry("a", category="Anti-Patterns/Sea")
    prefixes = index_document.document(memory).filters["category_prefixes"]
    assert set(prefixes) == {"Anti-Patterns", "Anti-Patterns/Sea", "anti-patterns"}
