"""A long-term memory: as a caller drafts it, and as it is stored and returned."""

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, computed_field
from sqlalchemy import RowMapping

from shared.foundation import errors, validation
from shared.foundation.origin import UNKNOWN, Origin, Trust
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.memory.longterm import decay
from shared.verification.claim import Verdict

MAX_CONTENT = 16_000
RECALLED_LINE_FIELDS = frozenset({"content", "category"})
"""The fields that the line of a recalled memory shows. A change of one is a new content version."""
MAX_KEY_LENGTH = 256
"""Characters of a key. With the scope and the namespace it must fit into an entry of a Postgres index."""
MAX_REINFORCEMENT_COUNT = 2**31 - 1
"""A memory that was observed more often has this count: its column has room for no more."""


Name = tuple[str, str]
"""The namespace and the key of a memory; '' is no namespace."""


class Archiver(StrEnum):
    """Who archived a memory."""

    CALLER = "caller"
    ENRICHMENT = "enrichment"
    DREAM = "dream"
    EXPIRY = "expiry"  # its text or key was saved again after it had expired, and before it was deleted


class DecidedBy(StrEnum):
    """Who decided that a memory is stored."""

    CALLER = "caller"
    STRUCTURE = "structure"  # its form alone was checked
    SIGNS = "signs"  # no trusted judge was there to ask, and no sign of doubt was found
    JUDGE = "judge"


def _is_none(value: int | None) -> bool:
    return value is None


class Source(BaseModel):
    """The turn, the turns from `first_seq` to `seq`, or the session that a memory comes from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    session_id: str
    seq: int | None = Field(default=None, ge=0, le=2**31 - 1)
    speaker: str | None = None
    role: str | None = None
    # Only of what a dream has learnt from several turns; otherwise it is left out of the JSON.
    first_seq: int | None = Field(default=None, ge=0, le=2**31 - 1, exclude_if=_is_none)


class MemoryDraft(BaseModel):
    """A memory that a caller wants to save. `validated` checks it against the rules."""

    model_config = ConfigDict(frozen=True)

    content: str
    category: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = Field(default_factory=dict)
    importance: float = 0.5
    occurred_at: datetime | None = None
    source: Source | None = None
    enrich: bool = True
    namespace: str = ""
    key: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    # The trust that the caller asks for, which is never more than the server gives.
    trust: Trust | None = None

    @property
    def is_deduplicated(self) -> bool:
        """Tell whether the memory reinforces a live one that says the same: without a key, and not closed."""
        return self.key is None and self.valid_until is None

    def validated(self) -> "MemoryDraft":
        """Return the draft as it will be stored. Raises errors.Invalid, naming the field and the rule."""
        return self.model_copy(
            update=self._checked_text() | check_name(self.namespace, self.key) | self._checked_times()
        )

    def _checked_text(self) -> dict[str, Any]:
        return {
            "content": validation.check_text(self.content, "content", MAX_CONTENT),
            "category": None if self.category is None else validation.check_category(self.category),
            "tags": validation.check_tags(self.tags),
            "metadata": validation.check_metadata(self.metadata),
            "source": None if self.source is None else check_source(self.source, "source"),
        }

    def _checked_times(self) -> dict[str, datetime | None]:
        names = ("occurred_at", "valid_from", "valid_until", "expires_at")
        moments = {name: getattr(self, name) for name in names}
        times = {name: moment and validation.check_time(moment, name) for name, moment in moments.items()}
        valid_from, valid_until, expires_at = times["valid_from"], times["valid_until"], times["expires_at"]
        if valid_from and valid_until and valid_from >= valid_until:
            raise errors.Invalid("valid_until", "must be later than valid_from")
        if expires_at is not None:
            validation.check_future(expires_at, "expires_at")
        return times


class SavedDraft(NamedTuple):
    """A draft that is saved, and where the server says that it comes from."""

    draft: MemoryDraft
    origin: Origin


def check_name(namespace: str, key: str | None) -> dict[str, str | None]:
    """Return the namespace and the key of a memory; '' is no namespace.

    Raises errors.Invalid for a namespace that is no path or has no key, and a key with control characters.
    """
    if namespace and key is None:
        raise errors.Invalid("namespace", "is that of a key: give a key, too")
    return {
        "namespace": namespace and validation.check_category(namespace, "namespace"),
        "key": None if key is None else validation.check_single_line(key, "key", MAX_KEY_LENGTH),
    }


def check_source(source: Source, field: str) -> Source:
    """Return the source. Raises errors.Invalid, naming the field below `field` and the rule."""
    validation.check_identifier(source.session_id, f"{field}.session_id")
    for name in ("speaker", "role"):
        value = getattr(source, name)
        if value is not None:
            validation.check_text(value, f"{field}.{name}", 128)
    return source


class Memory(BaseModel):
    """A long-term memory as it is stored in Postgres."""

    model_config = ConfigDict(frozen=True)

    id: str
    content: str
    category: str | None
    tags: list[str]
    metadata: dict[str, str]
    importance: float
    state: MemoryState
    failure_reason: str | None = None
    occurred_at: datetime | None
    source: Source | None
    sources: list[Source]
    created_at: datetime
    updated_at: datetime | None
    last_seen_at: datetime
    reinforcement_count: int
    agent_id: str
    user_id: str | None
    superseded_by: list[str]
    derived_from: list[str]
    archived_at: datetime | None
    archive_reason: str | None
    archived_by: Archiver | None = None
    namespace: str = ""
    key: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    decided_by: DecidedBy | None = None
    # What the judge said of it, and the model that was the judge.
    verdict: Verdict | None = None
    judge_model: str | None = None
    contested_with: list[str] = Field(default_factory=list)
    version: int
    origin: Origin = UNKNOWN
    tenant: str = Field(exclude=True)
    content_version: int = Field(exclude=True)
    # Whether something that it was joined with was saved without a source.
    saved_without_source: bool = Field(default=False, exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Memory":
        """Read a memory from a row of the table `memory`."""
        sources = [Source.model_validate(source) for source in row["sources"]]
        fields: dict[str, Any] = {**row, "sources": sources, "source": sources[0] if sources else None}
        fields["origin"] = Origin.from_row(fields)
        return cls.model_validate(fields)

    @property
    def scope(self) -> Scope:
        """The scope that the memory belongs to."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def effective_importance(self) -> float:
        """The decayed importance, which ranking uses."""
        return decay.effective_importance(self.importance, self.last_seen_at)

    @property
    def is_deduplicated(self) -> bool:
        """Tell whether another live memory of the scope must not say the same."""
        return self.archived_at is None and self.key is None and self.valid_until is None

    @property
    def is_evidence(self) -> bool:
        """Whether a worker has rewritten or merged it into others, which searches find by its text, too.

        What has an end of its validity is none: what came after it says something else.
        """
        is_replaced = self.archived_by in (Archiver.ENRICHMENT, Archiver.DREAM) and bool(self.superseded_by)
        return is_replaced and self.valid_until is None

    @property
    def has_other_origin(self) -> bool:
        """Whether it was saved without a source, too: then it is not derived from its sources alone."""
        return self.saved_without_source or not self.sources

    @property
    def at(self) -> datetime:
        """The time that the memory is about, or else when it was created."""
        return self.occurred_at or self.created_at
