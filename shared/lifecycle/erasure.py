"""Erase everything that belongs to a user or an agent, in every database, and keep a receipt.

Postgres comes first, in one transaction; a very large erasure is left to a job, in batches. From then on
nothing of them can be read. What Redis and Qdrant still hold is removed at once as far as possible, and
by a job otherwise: the receipt says `pending` until it is done. It names nobody: a user stands in it as a
keyed digest. Asking again answers the same receipt, unless there is something new to erase.
"""

from collections import Counter
from typing import Any

import uuid_utils
from sqlalchemy import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors, stages
from shared.foundation.content import Subject
from shared.foundation.scope import Caller
from shared.jobs import removals
from shared.lifecycle import erased_rows, erasure_queries, removal
from shared.lifecycle.erased_rows import Owner
from shared.lifecycle.removal import Removal
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources

MAX_ROWS_PER_REQUEST = 100_000
"""More memories and turns than this are erased by a job."""
_BATCH = 5_000
_COUNTED = (
    *("memories", "archived", "history", "sessions", "feedback", "turns", "observations"),
    *("dream_runs", "stored_responses", "anonymised_charges", "texts", "files"),
    *("working_entries", "scratch_stores", "points"),
)
_STORES = ("postgres", removal.REDIS, removal.QDRANT)
Receipt = dict[str, Any]


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


async def get_receipt(resources: Resources, caller: Caller, erasure_id: str) -> Receipt:
    """Return the receipt of an erasure as it is now.

    Raises errors.NotFound for an unknown one. A bound key may read those of its own user or agent.
    """
    receipt = await _read_receipt(resources, caller.tenant, erasure_id)
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        for field, value in caller.bindings.items():
            subject = Subject(field.removesuffix("_id")) if field.endswith("_id") else Subject.SESSION
            digest = await erasure_queries.digest_of(connection, caller.tenant, subject, value)
            if digest.hex() != receipt["digest"]:
                raise errors.NotFound(f"no erasure '{erasure_id}'")
    return receipt


async def _erase(resources: Resources, tenant: str, owner: Owner) -> Receipt:
    async with resources.postgres.for_tenant(tenant) as connection:
        await removals.lock_subject(connection, tenant, owner.subject, owner.id)
        digest = await erasure_queries.digest_of(connection, tenant, owner.subject, owner.id)
        last = await erasure_queries.find_last(connection, tenant, digest)
        rest = await _begin(connection, tenant, owner, digest, last)
    if rest is None:
        resources.publisher.wake(stages.REMOVE)
    else:
        await removal.work_off(resources, rest)
    async with resources.postgres.for_tenant(tenant) as connection:
        row = await erasure_queries.find_last(connection, tenant, digest)
    return await _read_receipt(resources, tenant, row["id"] if row else "")


async def _begin(
    connection: AsyncConnection, tenant: str, owner: Owner, digest: bytes, last: RowMapping | None
) -> Removal | None:
    """Delete the rows and return what is to be removed; None if a job erases, because it is very much."""
    if last is not None and last["subject_id"] is not None:
        return None
    if await erased_rows.count_rows(connection, tenant, owner) > MAX_ROWS_PER_REQUEST:
        erasure_id = str(uuid_utils.uuid7())
        await erasure_queries.add(connection, tenant, erasure_id, owner.subject, digest, owner.id)
        await removals.schedule(connection, tenant, erasure_id, 0)
        return None
    rows, counts, _ = await erased_rows.collect(connection, tenant, owner)
    is_repeated = last is not None and not any(counts.values())
    erasure_id = last["id"] if last is not None and is_repeated else str(uuid_utils.uuid7())
    deleted_counts, rest = await erased_rows.erase(connection, rows, owner, erasure_id)
    if is_repeated:
        await erasure_queries.request_again(connection, tenant, erasure_id)
    else:
        await erasure_queries.add(connection, tenant, erasure_id, owner.subject, digest, None)
    await erasure_queries.add_counts(connection, tenant, erasure_id, _receipt(counts + deleted_counts))
    return rest


def _receipt(counts: Counter[str]) -> dict[str, int]:
    """Return the numbers by all names of the receipt. The other databases add to some of them later."""
    return dict.fromkeys(_COUNTED, 0) | counts


async def resume(resources: Resources, tenant: str, erasure_id: str) -> errors.Unavailable | None:
    """Go on with an erasure or a deletion until it is done; return why it is not."""
    while await _erase_batch(resources, tenant, erasure_id):
        pass
    return await removal.work_off(resources, Removal(tenant, erasure_id), time_limit=None)


async def _erase_batch(resources: Resources, tenant: str, erasure_id: str) -> bool:
    """Delete a batch of rows of an erasure, if Postgres is not done; return whether more are left."""
    async with resources.postgres.for_tenant(tenant) as connection:
        row = await erasure_queries.get(connection, tenant, erasure_id)
        if row is None or row["subject_id"] is None:
            return False
        owner = Owner(Subject(row["subject"]), row["subject_id"])
        await removals.lock_subject(connection, tenant, owner.subject, owner.id)
        rows, counts, is_complete = await erased_rows.collect(connection, tenant, owner, _BATCH)
        deleted_counts, _ = await erased_rows.erase(connection, rows, owner, erasure_id)
        await erasure_queries.add_counts(connection, tenant, erasure_id, _receipt(counts + deleted_counts))
        if is_complete:
            await erasure_queries.end_rows(connection, tenant, erasure_id)
        return not is_complete


async def _read_receipt(resources: Resources, tenant: str, erasure_id: str) -> Receipt:
    async with resources.postgres.for_tenant(tenant) as connection:
        row = await erasure_queries.get(connection, tenant, erasure_id)
        if row is None:
            raise errors.NotFound(f"no erasure '{erasure_id}'")
        pending = await removals.count_pending(connection, tenant, erasure_id)
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
