"""Erase everything of a user or an agent, or the memories that match a filter, and keep a receipt.

Postgres comes first, in one transaction; a very large erasure is left to a job, in batches. From then on
nothing of them can be read. What Redis and Qdrant still hold is removed at once as far as possible, and
by a job otherwise: the receipt says `pending` until it is done. It names nobody: a user stands in it as a
keyed digest. Asking again answers the same receipt, unless there is something new to erase.

A deletion waits for writers of what it deletes, and they for it. If each holds what the other waits for,
Postgres ends one of them, which then begins again (`repeated_after_deadlock`).
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import uuid_utils
from sqlalchemy import RowMapping

from shared.foundation import errors, stages
from shared.foundation.content import Subject
from shared.foundation.scope import Caller, Scope
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.lifecycle import erasure_queries, removal
from shared.lifecycle.deletion import Deletion
from shared.lifecycle.erased_document import ErasedDocument
from shared.lifecycle.erased_rows import Owner
from shared.lifecycle.matching_rows import Matching
from shared.lifecycle.removal import Removal
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources

MAX_ROWS_PER_REQUEST = 100_000
"""More memories and turns than this are erased by a job."""
_BATCH = 5_000
_COUNTED = (
    *("memories", "archived", "history", "sessions", "feedback", "turns", "observations", "snippets"),
    *("dream_runs", "stored_responses", "anonymised_charges", "texts", "files", "pinned_texts"),
    *("business_context_lines", "preferences", "playbooks", "proposals"),
    *("skills", "skill_files", "entities", "triples", "documents", "document_chunks"),
    *("working_entries", "scratch_stores", "points"),
)
_STORES = ("postgres", removal.REDIS, removal.QDRANT)
Receipt = dict[str, Any]


class Target(Protocol):
    """What is erased: an owner with everything of theirs, or the memories that match a filter."""

    @property
    def subject(self) -> Subject:
        """What the id stands for."""

    @property
    def id(self) -> str:
        """What names the target."""

    @property
    def owners(self) -> Mapping[Subject, str]:
        """Whose bound keys may read the receipt, besides that of the target itself."""

    async def count_rows(self, tx: Transaction) -> int:
        """Return about how many rows there are."""

    async def collect(self, tx: Transaction, limit: int | None = None) -> tuple[Deletion, Counter[str], bool]:
        """Lock rows, about `limit` at most; return their deletion, their numbers, and if they are all."""

    async def erase(self, tx: Transaction, rows: Deletion, erasure_id: str) -> tuple[Counter[str], Removal]:
        """Delete collected rows; return their numbers by the names of the receipt, and what is left."""


async def erase_user(resources: Resources, caller: Caller, user_id: str) -> Receipt:
    """Erase a user, for all agents, and return the receipt.

    Raises errors.Forbidden for a key that is bound to anything but this user.
    """
    rights.scope(caller, Area.USERS, Action.WRITE, None, user_id)
    return await _erase(resources, caller.tenant, Owner(Subject.USER, user_id)) | {"user_id": user_id}


async def delete_agent(resources: Resources, caller: Caller, agent_id: str) -> Receipt:
    """Erase an agent with its profile, sessions and memories, and return the receipt.

    Raises errors.Forbidden for a key that is bound to anything but this agent.
    """
    rights.scope(caller, Area.AGENTS, Action.WRITE, agent_id)
    return await _erase(resources, caller.tenant, Owner(Subject.AGENT, agent_id)) | {"agent_id": agent_id}


async def delete_matching(resources: Resources, scope: Scope, matching: Matching) -> Receipt:
    """Delete the memories of exactly this scope that match a filter, and return the receipt."""
    receipt = await _erase(resources, scope.tenant, matching)
    return receipt | {"agent_id": scope.agent_id, "user_id": scope.user_id}


async def count_matching(resources: Resources, scope: Scope, matching: Matching) -> Receipt:
    """Return the receipt that `delete_matching` would return, and delete nothing: it has no id."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        counts = await matching.count(tx)
        digest = await erasure_queries.digest_of(tx, matching.subject, matching.id)
    return {
        "id": None,
        "subject": matching.subject,
        "digest": digest.hex(),
        "created_at": None,
        "state": "dry_run",
        "erased": all_counts(counts),
        "stores": dict.fromkeys(_STORES, "untouched"),
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
    }


async def get_receipt(resources: Resources, caller: Caller, erasure_id: str) -> Receipt:
    """Return the receipt of an erasure as it is now.

    Raises errors.NotFound for an unknown one. A bound key may read those of its own user or agent, and a key
    without the right `admin` those of deletions by a filter and of documents (else errors.Forbidden).
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        row = await erasure_queries.get(tx, erasure_id)
        if row is None or row["subject"] not in {Subject.MEMORY, Subject.DOCUMENT}:
            caller.require_right("admin")
        digests = [] if row is None else [bytes(row["digest"]).hex(), *row["owner_digests"]]
        for field, value in caller.bindings.items():
            subject = Subject(field.removesuffix("_id")) if field.endswith("_id") else Subject.SESSION
            digest = await erasure_queries.digest_of(tx, subject, value)
            if digest.hex() not in digests:
                raise errors.NotFound(f"no erasure '{erasure_id}'")
    return await read_receipt(resources, caller.tenant, erasure_id)


async def _erase(resources: Resources, tenant: str, target: Target) -> Receipt:
    digest, rest = await _commit(resources, tenant, target)
    if rest is None:
        resources.publisher.wake(stages.REMOVE)
    else:
        await removal.work_off(resources, rest)
    async with resources.postgres.for_tenant(tenant) as tx:
        row = await erasure_queries.find_last(tx, digest)
    return await read_receipt(resources, tenant, row["id"] if row else "")


@repeated_after_deadlock
async def _commit(resources: Resources, tenant: str, target: Target) -> tuple[bytes, Removal | None]:
    """Delete the rows; return the digest of the receipt, and what `_begin` returns."""
    async with resources.postgres.for_tenant(tenant) as tx:
        await removals.lock_subject(tx, target.subject, target.id)
        digest = await erasure_queries.digest_of(tx, target.subject, target.id)
        last = await erasure_queries.find_last(tx, digest)
        return digest, await _begin(tx, target, digest, last)


async def _begin(tx: Transaction, target: Target, digest: bytes, last: RowMapping | None) -> Removal | None:
    """Delete the rows and return what is to be removed; None if a job erases, because it is very much."""
    if last is not None and last["subject_id"] is not None:
        return None
    owners = [await erasure_queries.digest_of(tx, subject, id_) for subject, id_ in target.owners.items()]
    if await target.count_rows(tx) > MAX_ROWS_PER_REQUEST:
        erasure_id = str(uuid_utils.uuid7())
        await erasure_queries.add(tx, erasure_id, target.subject, digest, target.id, owners)
        await removals.schedule(tx, tx.tenant, erasure_id, 0)
        return None
    rows, counts, _ = await target.collect(tx)
    is_repeated = last is not None and not any(counts.values())
    erasure_id = last["id"] if last is not None and is_repeated else str(uuid_utils.uuid7())
    deleted_counts, rest = await target.erase(tx, rows, erasure_id)
    if is_repeated:
        await erasure_queries.request_again(tx, erasure_id)
    else:
        await erasure_queries.add(tx, erasure_id, target.subject, digest, None, owners)
    await erasure_queries.add_counts(tx, erasure_id, all_counts(counts + deleted_counts))
    return rest


def all_counts(counts: Counter[str]) -> dict[str, int]:
    """Return the numbers by all names of the receipt. The other databases add to some of them later."""
    return dict.fromkeys(_COUNTED, 0) | counts


async def resume(resources: Resources, tenant: str, erasure_id: str) -> errors.Unavailable | None:
    """Go on with an erasure or a deletion until it is done; return why it is not."""
    while await _erase_batch(resources, tenant, erasure_id):
        pass
    return await removal.work_off(resources, Removal(tenant, erasure_id), time_limit=None)


async def _erase_batch(resources: Resources, tenant: str, erasure_id: str) -> bool:
    """Delete a batch of rows of an erasure, if Postgres is not done; return whether more are left."""
    async with resources.postgres.for_tenant(tenant) as tx:
        row = await erasure_queries.get(tx, erasure_id)
        if row is None or row["subject_id"] is None:
            return False
        target = _target_of(row["subject"], row["subject_id"], row["created_at"])
        await removals.lock_subject(tx, target.subject, target.id)
        rows, counts, is_complete = await target.collect(tx, _BATCH)
        deleted_counts, _ = await target.erase(tx, rows, erasure_id)
        await erasure_queries.add_counts(tx, erasure_id, all_counts(counts + deleted_counts))
        if is_complete:
            await erasure_queries.end_rows(tx, erasure_id)
        return not is_complete


def _target_of(subject: str, subject_id: str, requested_at: datetime) -> Target:
    if subject == Subject.MEMORY:
        return Matching.from_id(subject_id, requested_at)
    if subject == Subject.DOCUMENT:
        return ErasedDocument(subject_id)
    return Owner(Subject(subject), subject_id)


async def read_receipt(resources: Resources, tenant: str, erasure_id: str) -> Receipt:
    """Return the receipt of an erasure or deletion as it is now. Raises errors.NotFound for no known one."""
    async with resources.postgres.for_tenant(tenant) as tx:
        row = await erasure_queries.get(tx, erasure_id)
        if row is None:
            raise errors.NotFound(f"no erasure '{erasure_id}'")
        pending = await removals.count_pending(tx, erasure_id)
    if row["subject_id"] is not None:
        pending = dict.fromkeys(_STORES, 1)
    states = {store: "pending" if pending.get(store) else "done" for store in _STORES}
    return {
        "id": row["id"],
        "subject": row["subject"],
        "digest": bytes(row["digest"]).hex(),
        "created_at": row["created_at"].isoformat(),
        "state": "pending" if any(pending.values()) else "done",
        "erased": row["counts"],
        "stores": states,
    }
