"""Tombstones: keyed digests of deleted texts, so that no worker and no import brings them back.

Only a save by a caller, or an import that restores on request, removes a tombstone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.longterm import tombstone_queries
from shared.memory.longterm.fingerprint import normalize, tombstone_digest
from shared.memory.longterm.memory import Memory
from shared.platform.auth import queries as auth_queries


class _Saying(Protocol):
    """A memory, as far as it matters here: what it says, and under which key."""

    @property
    def content(self) -> str: ...

    @property
    def key(self) -> str | None: ...


S = TypeVar("S", bound=_Saying)


def select_unsaid(deleted: Iterable[S], live: Iterable[_Saying]) -> list[S]:
    """Return those of the deleted memories whose text gets a tombstone: no live memory says it any more.

    One with a key goes on saying the text of a deleted one without a key, because a caller wants it to and no
    worker touches it. The deleted one gets a tombstone all the same: the text is not to be said twice again.
    """
    said = {(normalize(memory.content), memory.key is None) for memory in live}

    def is_said(memory: S) -> bool:
        text = normalize(memory.content)
        return (text, True) in said or (memory.key is not None and (text, False) in said)

    return [memory for memory in deleted if not is_said(memory)]


async def add(tx: Transaction, memories: Sequence[Memory], reason: str | None = None) -> None:
    """Store a tombstone for the content of each memory, in the memory's own scope.

    `reason` is why a caller deleted the memories.
    """
    secret = await auth_queries.get_tenant_secret(tx, tx.tenant)
    rows = [
        {
            "tenant": tx.tenant,
            "agent_id": memory.agent_id,
            "user_id": memory.user_id,
            "digest": tombstone_digest(secret, memory.content),
            "memory_id": memory.id,
            "reason": reason,
        }
        for memory in memories
    ]
    await tombstone_queries.insert_missing(tx, rows)


async def add_texts(tx: Transaction, scope: Scope, texts: Mapping[str, str]) -> None:
    """Store a tombstone for each of many texts of a scope, given by the id of the memory."""
    secret = await auth_queries.get_tenant_secret(tx, scope.tenant)
    digests = {memory_id: tombstone_digest(secret, text) for memory_id, text in texts.items()}
    await tombstone_queries.insert_digests(tx, scope, digests)


async def remove(tx: Transaction, scope: Scope, contents: Sequence[str]) -> None:
    """Delete the tombstones of these texts in this scope."""
    # Most scopes have no tombstone, and the digests need another query.
    if await tombstone_queries.has_any(tx, scope):
        digests = await _digests(tx, contents)
        await tombstone_queries.remove(tx, scope, list(digests.values()))


async def find_deleted(tx: Transaction, scope: Scope, contents: Sequence[str]) -> set[str]:
    """Return those of these texts that have a tombstone in this scope."""
    digests = await _digests(tx, contents)
    deleted_digests = await tombstone_queries.find_existing(tx, scope, list(digests.values()))
    return {content for content, digest in digests.items() if digest in deleted_digests}


async def _digests(tx: Transaction, contents: Sequence[str]) -> dict[str, bytes]:
    """Return the tombstone digest of each text."""
    secret = await auth_queries.get_tenant_secret(tx, tx.tenant)
    return {content: tombstone_digest(secret, content) for content in contents}
