"""Tombstones: keyed digests of what callers have deleted, so that no dream and no import brings it back.

A deleted entity comes back under none of its names, and a deleted triple not between the same two entities,
whichever of their names or ids says them. Only a caller who saves it removes the tombstone.
"""

import hashlib
import hmac
from collections.abc import Collection, Iterable, Mapping, Sequence

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.graph import entity_queries, tombstone_queries
from shared.memory.graph.names import fold
from shared.platform.auth import queries as auth_queries

Words = tuple[str, ...]
"""What a tombstone is of: the name of an entity, or subject, predicate and object of a triple."""


async def add(tx: Transaction, scope: Scope, deleted: Iterable[Words]) -> None:
    """Store a tombstone of each of these in exactly this scope."""
    digests = await _digests(tx, scope, deleted)
    await tombstone_queries.add(tx, scope, sorted(set(digests.values())))


async def remove(tx: Transaction, scope: Scope, saved: Iterable[Words]) -> None:
    """Remove the tombstones of these: a caller has saved them."""
    digests = await _digests(tx, scope, saved)
    await tombstone_queries.remove(tx, scope, sorted(set(digests.values())))


async def find_deleted(tx: Transaction, scope: Scope, proposed: Iterable[Words]) -> set[Words]:
    """Return those that a caller has deleted from exactly this scope."""
    digests = await _digests(tx, scope, proposed)
    existing = await tombstone_queries.find_existing(tx, scope, sorted(set(digests.values())))
    return {words for words, digest in digests.items() if digest in existing}


async def known_names(tx: Transaction, scope: Scope, named: Collection[str]) -> dict[str, list[str]]:
    """Return all names of the entities that a scope sees under these names or ids, its own name first."""
    if not named:
        return {}
    by_folded = await entity_queries.resolve_names(tx, scope, sorted(named))
    candidates = {*named, *by_folded.values()}
    entities = await entity_queries.list_by_ids(tx, sorted(candidates))
    visible = {id_: entity for id_, entity in entities.items() if entity.is_seen_by(scope)}
    chosen = {name: visible.get(name) or visible.get(by_folded.get(fold(name), "")) for name in named}
    return {name: entity.names for name, entity in chosen.items() if entity is not None}


def words_of_triple(
    subject: str, predicate: str, object_: str, known: Mapping[str, Sequence[str]]
) -> set[Words]:
    """Return all that a triple may have been deleted as: its ends, and what it says under their names.

    A tombstone has the names that the entities had, which are aliases if these were merged since. Not each
    alias is combined with each: one of the two ends goes by the name given, or by that of its entity.
    """
    subjects, objects = [subject, *known.get(subject, ())], [object_, *known.get(object_, ())]
    said = {(name, predicate, other) for name in subjects for other in objects[:2]}
    said |= {(name, predicate, other) for name in subjects[:2] for other in objects}
    return {(subject,), (object_,), *said}


async def _digests(tx: Transaction, scope: Scope, items: Iterable[Words]) -> dict[Words, bytes]:
    secret = await auth_queries.get_tenant_secret(tx, scope.tenant)
    wanted = set(items)
    folded = {word: fold(word) for word in {word for words in wanted for word in words}}
    return {words: _digest(secret, [folded[word] for word in words]) for words in wanted}


def _digest(secret: bytes, folded: Sequence[str]) -> bytes:
    text = "\x1f".join(["graph", *folded])
    return hmac.new(secret, text.encode(), hashlib.sha256).digest()
