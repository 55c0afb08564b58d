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
from shared.foundation.roles import MAX_CONTENT, Role

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
    def of(cls, settings: Settings, kind: OwnerKind) -> "Caps":
        """Return the caps that the settings give a kind of owner, now: older stores follow."""
        keys = settings.agent_kv if kind is OwnerKind.AGENT else settings.session_kv
        return cls(keys, settings.session_transcript)


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A key with its value. `written` orders the writes of a store."""

    key: str
    value: Value
    written: int

    def shown(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "key": self.key,
            "value": json_codec.encode(self.value),
            "type": json_codec.type_of(self.value),
            "updated_at": shown_time(time_of(self.written)),
        }


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody adds to a transcript."""

    role: Role
    content: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    def checked(self) -> "Draft":
        """Return it as it will be stored; raise errors.Invalid naming the field and the rule."""
        content = validation.check_text(self.content, "content", MAX_CONTENT)
        return Draft(self.role, content, validation.check_metadata(self.metadata))


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a transcript."""

    role: Role
    content: str
    metadata: Mapping[str, str]
    timestamp: datetime

    def shown(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "role": self.role,
            "content": self.content,
            "metadata": dict(self.metadata),
            "timestamp": shown_time(self.timestamp),
        }


@dataclass(frozen=True, slots=True)
class Listing:
    """A collection as it is listed: its size is that of its stored form, in bytes."""

    label: str
    type: str
    index: bool
    size_bytes: int
    version: int

    def shown(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "label": self.label,
            "type": self.type,
            "index": self.index,
            "size_bytes": self.size_bytes,
            "version": self.version,
            "updated_at": shown_time(time_of(self.version)),
        }


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A collection as it stood when it was read; changing it changes nothing until it is put back."""

    listing: Listing
    collection: Collection

    def shown(self) -> dict[str, Any]:
        """Return it as JSON."""
        return self.listing.shown() | {"value": collection_codec.encode_collection(self.collection)}


def time_of(written: int) -> datetime:
    """Return the time of a write (microseconds since 1970)."""
    return _EPOCH + written * _MICROSECOND


def write_of(moment: datetime) -> int:
    """Return the number of the write that `time_of` dates so."""
    return (moment - _EPOCH) // _MICROSECOND


def shown_time(moment: datetime) -> str:
    """Return a time in UTC as JSON shows it."""
    return moment.isoformat().replace("+00:00", "Z")
