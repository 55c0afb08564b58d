"""What every store can do, whatever keeps it: one behaviour, and one suite of tests for all.

A store is opened for one owner and asked within one step. `basic_session` works in the transaction
it is given; `tmp` has one script for each operation. Either way an operation is atomic, and what it
answers is a snapshot.
"""

from collections.abc import Collection as Several
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

# Versions that a writer may expect besides those it has read.
ABSENT = 0
EXISTS = -1


class StateStore(Protocol):
    """Keys, a transcript and labelled collections of one owner.

    Raises errors.Unsupported, naming store and operation, for what this owner has no use for.
    """

    @property
    def name(self) -> str:
        """The store's type."""

    @property
    def owner(self) -> Owner:
        """Who holds it."""

    @property
    def caps(self) -> Caps:
        """What it holds at most."""

    async def set_key(self, key: str, value: Value) -> KeyEntry:
        """Write a key; over the cap, the keys that were written least recently go."""

    async def get_key(self, key: str) -> KeyEntry | None:
        """Return a key with its value."""

    async def delete_key(self, key: str) -> bool:
        """Delete a key; tell whether it was there."""

    async def list_keys(self, limit: int, after: int = 0) -> list[KeyEntry]:
        """Return keys in the order of their last write, those written after `after`."""

    async def append(self, draft: TranscriptDraft) -> TranscriptEntry:
        """Add to the transcript; over the cap, its oldest entries go."""

    async def transcript(self, last: int) -> list[TranscriptEntry]:
        """Return the last entries, oldest first."""

    async def get_collection(self, label: str) -> CollectionSnapshot | None:
        """Return a snapshot of a collection."""

    async def put_collection(
        self, label: str, collection: Collection, *, index: bool, expected: Several[int] | None = None
    ) -> CollectionInfo:
        """Write a collection as a whole.

        `expected` are the versions that may be there, ABSENT and EXISTS among them; another one is
        errors.Conflict. None writes whatever is there.
        """

    async def remove_collection(self, label: str, *, expected: Several[int] | None = None) -> bool:
        """Remove a collection, under the same condition; tell whether it was there."""

    async def list_collections(self) -> list[CollectionInfo]:
        """Return what collections there are, by label."""

    async def drop(self) -> bool:
        """Delete everything that this store holds; tell whether that was anything."""
