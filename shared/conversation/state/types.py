"""State stores: their owners, maximums and contents."""

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
    """The kinds of owners of a state store."""

    SESSION = "session"
    AGENT = "agent"
    SCRATCH = "scratch"  # a scratch store belongs to no session and is its own owner


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a state store: a session, an agent or a scratch store of a tenant."""

    tenant: str
    kind: OwnerKind
    id: str


# The operations that each kind of owner has, which are those it has HTTP routes for. All others are rejected.
OPERATIONS = {
    OwnerKind.SESSION: frozenset({"kv", "transcript", "collections", "search"}),
    OwnerKind.AGENT: frozenset({"kv"}),
    OwnerKind.SCRATCH: frozenset({"kv", "collections", "search"}),
}


@dataclass(frozen=True, slots=True)
class Caps:
    """The maximum numbers of keys and transcript entries; beyond them, the oldest are deleted."""

    keys: int
    entries: int

    @classmethod
    def from_settings(cls, settings: Settings, kind: OwnerKind) -> "Caps":
        """Return the current maximums of a kind of owner. They also apply to existing state stores."""
        keys = settings.agent_max_keys if kind is OwnerKind.AGENT else settings.session_max_keys
        return cls(keys, settings.session_max_transcript_entries)


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A key with its value. Versions order the writes of a state store."""

    key: str
    value: Value
    version: int

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of API responses."""
        return {
            "key": self.key,
            "value": json_codec.encode(self.value),
            "type": json_codec.type_of(self.value),
            "version": self.version,
            "updated_at": to_json_time(version_to_time(self.version)),
        }


@dataclass(frozen=True, slots=True)
class TranscriptDraft:
    """A transcript entry that is to be added."""

    role: Role
    content: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    def validated(self) -> "TranscriptDraft":
        """Return the entry as it will be stored; raise errors.Invalid that names the field and the rule."""
        content = validation.check_text(self.content, "content", MAX_TURN_CONTENT)
        return TranscriptDraft(self.role, content, validation.check_metadata(self.metadata))


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """A stored entry of a transcript."""

    role: Role
    content: str
    metadata: Mapping[str, str]
    timestamp: datetime

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of API responses."""
        return {
            "role": self.role,
            "content": self.content,
            "metadata": dict(self.metadata),
            "timestamp": to_json_time(self.timestamp),
        }


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection without its values. `size_bytes` is the size of the stored form."""

    label: str
    type: str
    index: bool
    size_bytes: int
    version: int

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of API responses."""
        return {
            "label": self.label,
            "type": self.type,
            "index": self.index,
            "size_bytes": self.size_bytes,
            "version": self.version,
            "updated_at": to_json_time(version_to_time(self.version)),
        }


@dataclass(frozen=True, slots=True)
class CollectionSnapshot:
    """A collection at the time it was read. A change takes effect only when it is written back."""

    info: CollectionInfo
    collection: Collection

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of API responses."""
        return self.info.to_json() | {"value": collection_codec.encode_collection(self.collection)}


def version_to_time(version: int) -> datetime:
    """Return the time of a write from its version, in microseconds since 1970."""
    return _EPOCH + version * _MICROSECOND


def time_to_version(moment: datetime) -> int:
    """Return the version whose time is `moment`: the inverse of `version_to_time`."""
    return (moment - _EPOCH) // _MICROSECOND


def to_json_time(moment: datetime) -> str:
    """Return a UTC time in ISO 8601 with the suffix Z."""
    return moment.isoformat().replace("+00:00", "Z")
