"""What a store is, and what it holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from shared.conversation.values import collection_codec, json_codec
from shared.conversation.values.collection import Collection
from shared.conversation.values.value import Value
from shared.foundation import validation
from shared.foundation.config import Settings
from shared.foundation.roles import MAX_TURN_CONTENT, Role

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class OwnerKind(StrEnum):
    """Whose a store is."""

    SESSION = "session"
    AGENT = "agent"
    SCRATCH = "scratch"  # nobody's: it stands by itself


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a store: one of a tenant's sessions, agents or scratch stores."""

    tenant: str
    kind: OwnerKind
    id: str


# What each kind of owner has a use for, and its clients therefore a route. All the rest is refused.
OPERATIONS = {
    OwnerKind.SESSION: frozenset({"kv", "transcript", "collections", "search"}),
    OwnerKind.AGENT: frozenset({"kv"}),
    OwnerKind.SCRATCH: frozenset({"kv", "collections", "search"}),
}


@dataclass(frozen=True, slots=True)
class Caps:
    """How many keys and transcript entries a store holds before the oldest make room."""

    keys: int
    entries: int

    @classmethod
    def from_settings(cls, settings: Settings, kind: OwnerKind) -> "Caps":
        """Return the caps that the settings give a kind of owner, now: older stores follow."""
        keys = settings.agent_max_keys if kind is OwnerKind.AGENT else settings.session_max_keys
        return cls(keys, settings.session_max_transcript_entries)


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A key with its value. `written` orders the writes of a store."""

    key: str
    value: Value
    version: int

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "key": self.key,
            "value": json_codec.encode(self.value),
            "type": json_codec.type_of(self.value),
            "updated_at": shown_time(version_to_time(self.version)),
        }


@dataclass(frozen=True, slots=True)
class TranscriptDraft:
    """What somebody adds to a transcript."""

    role: Role
    content: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    def validated(self) -> "TranscriptDraft":
        """Return it as it will be stored; raise errors.Invalid naming the field and the rule."""
        content = validation.check_text(self.content, "content", MAX_TURN_CONTENT)
        return TranscriptDraft(self.role, content, validation.check_metadata(self.metadata))


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """An entry of a transcript."""

    role: Role
    content: str
    metadata: Mapping[str, str]
    timestamp: datetime

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "role": self.role,
            "content": self.content,
            "metadata": dict(self.metadata),
            "timestamp": shown_time(self.timestamp),
        }


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection as it is listed: its size is that of its stored form, in bytes."""

    label: str
    type: str
    index: bool
    size_bytes: int
    version: int

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "label": self.label,
            "type": self.type,
            "index": self.index,
            "size_bytes": self.size_bytes,
            "version": self.version,
            "updated_at": shown_time(version_to_time(self.version)),
        }


@dataclass(frozen=True, slots=True)
class CollectionSnapshot:
    """A collection as it stood when it was read; changing it changes nothing until it is put back."""

    listing: CollectionInfo
    collection: Collection

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return self.listing.to_json() | {"value": collection_codec.encode_collection(self.collection)}


def version_to_time(written: int) -> datetime:
    """Return the time of a write (microseconds since 1970)."""
    return _EPOCH + written * _MICROSECOND


def time_to_version(moment: datetime) -> int:
    """Return the number of the write that `time_of` dates so."""
    return (moment - _EPOCH) // _MICROSECOND


def shown_time(moment: datetime) -> str:
    """Return a time in UTC as JSON shows it."""
    return moment.isoformat().replace("+00:00", "Z")
