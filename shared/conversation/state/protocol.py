"""The interface of a state store. Both implementations behave alike, and the same tests run on both.

A state store is opened for one owner and used within one transaction. `basic_session` works in the
Postgres transaction it is given; `tmp` runs one Redis script per operation. In both, an operation
is atomic and returns a snapshot.
"""

from typing import Protocol

from shared.conversation.state.types import (
    Caps,
    CollectionInfo,
    CollectionSnapshot,
    KeyEntry,
    Owner,
    TranscriptDraft,
    TranscriptEntry,
)
from shared.conversation.values.collection import Collection
from shared.conversation.values.value import Value
from shared.foundation.versions import Expected


class StateStore(Protocol):
    """Keys, a transcript and labelled collections of one owner.

    Methods raise errors.Unsupported, naming the store type and the operation, when this kind of
    owner does not have the operation.
    """

    @property
    def name(self) -> str:
        """The store type."""

    @property
    def owner(self) -> Owner:
        """The session, agent or scratch store whose state this is."""

    @property
    def caps(self) -> Caps:
        """The maximum numbers of keys and transcript entries."""

    async def set_key(self, key: str, value: Value, *, expected: Expected | None = None) -> KeyEntry:
        """Write a key, of any version and none without `expected`.

        Over the maximum, the keys that were written least recently are deleted. Raises
        errors.PreconditionFailed for a stored version that is not expected.
        """

    async def get_key(self, key: str) -> KeyEntry | None:
        """Return a key with its value, or None."""

    async def delete_key(self, key: str, *, expected: Expected | None = None) -> bool:
        """Delete a key, of any version without `expected`; return whether it existed.

        Raises errors.PreconditionFailed for a stored version that is not expected.
        """

    async def list_keys(self, limit: int, after: int = 0) -> list[KeyEntry]:
        """Return up to `limit` keys in the order of their last write, from those after version `after`."""

    async def append(self, draft: TranscriptDraft) -> TranscriptEntry:
        """Add an entry to the transcript. Over the maximum, the oldest entries are deleted."""

    async def transcript(self, last: int) -> list[TranscriptEntry]:
        """Return the last entries of the transcript, oldest first."""

    async def get_collection(self, label: str) -> CollectionSnapshot | None:
        """Return a snapshot of a collection, or None."""

    async def put_collection(
        self, label: str, collection: Collection, *, index: bool, expected: Expected | None = None
    ) -> CollectionInfo:
        """Write a collection as a whole.

        `expected` lists the acceptable stored versions, among them perhaps ABSENT and EXISTS. Raises
        errors.PreconditionFailed for another stored version. Without `expected` only a new collection is
        written, so that nobody overwrites unread what another has written: raises
        errors.PreconditionRequired if there is one.
        """

    async def remove_collection(self, label: str, *, expected: Expected | None = None) -> bool:
        """Remove a collection, of any version without `expected`; return whether it existed.

        Raises errors.PreconditionFailed for a stored version that is not expected.
        """

    async def list_collections(self) -> list[CollectionInfo]:
        """Return the infos of all collections, ordered by label."""

    async def drop(self) -> bool:
        """Delete the whole state; return whether there was any."""
