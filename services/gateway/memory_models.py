"""Request and response bodies of the routes on memories."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from services.gateway.api_model import ApiModel, BatchApiModel, Count, Flag, UnitInterval, example
from shared.foundation import errors, validation
from shared.foundation.stages import MemoryState
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import MemoryDraft, Source
from shared.search.ranking import rank as ranking

MAX_REASON = 1000
_EXAMPLE = {
    "content": "Ada prefers trains to planes for trips under six hours.",
    "category": "user-preferences/travel",
    "tags": ["travel"],
    "user_id": "ada",
}


Metadata = Annotated[
    list[str] | None,
    Query(description="Pairs `name=value`, all of which a memory must have.", examples=[["colour=red"]]),
]


def parse_metadata(pairs: Iterable[str]) -> dict[str, str]:
    """Return metadata pairs of a query. Raise errors.Invalid for one without `=`."""
    metadata: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise errors.Invalid("metadata", "must be pairs such as colour=red")
        metadata[name] = value
    return metadata


class SourceBody(ApiModel):
    """The turn that a memory comes from."""

    session_id: str
    seq: Annotated[Count, Field(ge=0, le=2**31 - 1)] | None = None
    speaker: str | None = None
    role: str | None = None


class MemoryBody(ApiModel):
    """A memory to save."""

    model_config = example(_EXAMPLE)

    content: str
    category: str | None = None
    tags: list[str] = []
    metadata: dict[str, str] = {}
    importance: UnitInterval = 0.5
    enrich: Flag = True
    occurred_at: datetime | None = None
    source: SourceBody | None = None
    agent_id: str | None = None
    user_id: str | None = None

    def draft(self) -> MemoryDraft:
        """Return the memory to save. Raise errors.Invalid if it breaks a rule."""
        source = None if self.source is None else Source(**self.source.model_dump())
        fields = self.model_dump(exclude={"agent_id", "user_id", "source", "tags"})
        return MemoryDraft(**fields, tags=tuple(self.tags), source=source).validated()


class BatchBody(BatchApiModel):
    """Memories to save. Each is accepted or refused on its own."""

    model_config = example({"memories": [_EXAMPLE]})

    memories: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]


class MemoryPatch(ApiModel):
    """Fields to change. Fields that are not named stay as they are. The reason is kept in the history."""

    model_config = example({"importance": 0.9, "reason": "confirmed by Ada"})

    content: str | None = None
    category: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, str] | None = None
    importance: UnitInterval | None = None
    occurred_at: datetime | None = None
    reason: str | None = None

    def changes(self) -> dict[str, Any]:
        """Return the named fields. Raise errors.Invalid for a null that is not in category or occurred_at."""
        changes = {name: getattr(self, name) for name in self.model_fields_set - {"reason"}}
        for name, value in changes.items():
            if value is None and name not in {"category", "occurred_at"}:
                raise errors.Invalid(name, "must not be null")
        return changes

    def checked_reason(self) -> str | None:
        """Return why the memory is changed. Raise errors.Invalid if it breaks a rule."""
        return None if self.reason is None else validation.check_text(self.reason, "reason", MAX_REASON)


class SearchBody(ApiModel):
    """A search. Without a query, the most recently seen memories come first, page by page."""

    model_config = example({"query": "how does Ada like to travel?", "user_id": "ada"})

    query: Annotated[str | None, Field(max_length=16_000)] = None
    category: str | None = None
    tags: list[str] = []
    created_after: datetime | None = None
    created_before: datetime | None = None
    occurred_after: datetime | None = None
    occurred_before: datetime | None = None
    metadata: dict[str, str] = {}
    state: MemoryState | None = None
    limit: Annotated[Count, Field(ge=1, le=100)] = 20
    cursor: str | None = None
    min_similarity: Annotated[float | None, Field(ge=-1, le=1)] = None
    strategy: str = ranking.DEFAULT_STRATEGY
    explain: Flag = False
    agent_id: str | None = None
    user_id: str | None = None

    def filters(self) -> MemoryFilters:
        """Return the filters that a memory must match."""
        names = ("category", "created_after", "created_before", "occurred_after", "occurred_before")
        ranges = {name: getattr(self, name) for name in names}
        return MemoryFilters(**ranges, tags=tuple(self.tags), metadata=self.metadata, state=self.state)
