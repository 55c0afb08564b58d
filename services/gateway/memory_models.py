"""Request and response bodies of the routes on memories."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from services.gateway.api_model import (
    ApiModel,
    BatchApiModel,
    Count,
    Flag,
    RequestedTrust,
    UnitInterval,
    example,
)
from services.gateway.filter_models import CheckedFilter, FilterField, Validity
from shared.foundation import errors, validation
from shared.foundation.optional_fields import without_none
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
_NAMESPACE = "The namespace of the key: a path such as `preferences/travel`; none if it is not given."
_KEY = (
    "The name of the memory in its namespace, agent and user: up to 256 characters. A memory with this key "
    "is replaced. What has a key is stored as it is written (`enrich` has no effect), and never merged."
)
_VALID_FROM = "From when on it is true; without it, from always."
_VALID_UNTIL = "Until when it is true. The same text can be saved again beside a memory that has an end."
_EXPIRES_AT = "When the memory is deleted."
_SUPERSEDED_BY = "Of a memory with `valid_until`: the memories that say what is true since."
_NULLABLE = {"category", "occurred_at", "valid_from", "valid_until", "expires_at"}

Metadata = Annotated[
    list[str] | None,
    Query(description="Pairs `name=value`, all of which a memory must have.", examples=[["colour=red"]]),
]

Reason = Annotated[str | None, Query(description="Why, in at most 1000 characters. It is kept.")]


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
    """The turn that a memory comes from; without `seq` the session.

    With a bound key it must be one that the key may read. `role` and `speaker` must be those of the turn.
    """

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
    namespace: Annotated[str | None, Field(description=_NAMESPACE)] = None
    key: Annotated[str | None, Field(description=_KEY)] = None
    valid_from: Annotated[datetime | None, Field(description=_VALID_FROM)] = None
    valid_until: Annotated[datetime | None, Field(description=_VALID_UNTIL)] = None
    expires_at: Annotated[datetime | None, Field(description=_EXPIRES_AT)] = None
    trust: RequestedTrust = None
    agent_id: str | None = None
    user_id: str | None = None

    def draft(self) -> MemoryDraft:
        """Return the memory to save. Raise errors.Invalid if it breaks a rule."""
        source = None if self.source is None else Source(**self.source.model_dump())
        fields = self.model_dump(exclude={"agent_id", "user_id", "source", "tags", "namespace"})
        namespace = self.namespace or ""
        draft = MemoryDraft(**fields, namespace=namespace, tags=tuple(self.tags), source=source)
        return draft.validated()

    def named(self, **query: str | None) -> "MemoryBody":
        """Return the body with the names of the query. Raise errors.Invalid for one that it contradicts."""
        for name, value in query.items():
            if value is not None and getattr(self, name) not in {None, value}:
                raise errors.Invalid(name, "is not that of the query")
        return self.model_copy(update=without_none(**query))


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
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    superseded_by: Annotated[list[str] | None, Field(max_length=100, description=_SUPERSEDED_BY)] = None
    trust: RequestedTrust = None
    reason: str | None = None

    def changes(self) -> dict[str, Any]:
        """Return the named fields. Raise errors.Invalid for a null in a field that must have a value."""
        changes = {name: getattr(self, name) for name in self.model_fields_set - {"reason"}}
        for name, value in changes.items():
            if value is None and name not in _NULLABLE:
                raise errors.Invalid(name, "must not be null")
        return changes

    def checked_reason(self) -> str | None:
        """Return why the memory is changed. Raise errors.Invalid if it breaks a rule."""
        return check_reason(self.reason)


class ReasonBody(ApiModel):
    """Why something is done to a memory. The reason is kept in the history."""

    model_config = example({"reason": "Ada has moved"})

    reason: str | None = None


class KeptMemoryBody(ReasonBody):
    """Which memory stays valid of two that contest each other: the id of the other one."""

    model_config = example({"keep": "0f3c5a7e9b1d", "reason": "Ada has moved"})

    keep: str


class RevertBody(ReasonBody):
    """The version of the history whose fields the memory gets again."""

    model_config = example({"version": 1, "reason": "the correction was wrong"})

    version: Annotated[Count, Field(ge=1, le=2**63 - 1)]


def check_reason(reason: str | None) -> str | None:
    """Return why something is done. Raise errors.Invalid if it breaks a rule."""
    return None if reason is None else validation.check_text(reason, "reason", MAX_REASON)


class FilterDeletion(ApiModel):
    """Which memories of one scope to delete: those of the user, or without one the common ones of the agent.

    They match whatever their validity. With `dry_run` they are only counted.
    """

    model_config = example({"filter": {"field": "tags", "op": "eq", "value": "draft"}, "dry_run": True})

    filter: CheckedFilter
    dry_run: Flag = False
    agent_id: str | None = None
    user_id: str | None = None


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
    filter: FilterField | None = None
    as_of: datetime | None = None
    validity: Validity | None = None
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
        return MemoryFilters(
            **{name: getattr(self, name) for name in names},
            tags=tuple(self.tags),
            metadata=self.metadata,
            state=self.state,
            expression=self.filter,
            as_of=self.as_of,
            any_validity=self.validity is not None,
        )
