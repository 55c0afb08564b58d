"""Statements on long-term memories. Functions use the caller's transaction and never commit."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    LargeBinary,
    Select,
    Text,
    any_,
    bindparam,
    func,
    select,
    text,
    update,
)

from shared.foundation.scope import Caller, Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope, keyset_after, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.longterm.memory import MAX_REINFORCEMENT_COUNT, Archiver, Memory
from shared.memory.longterm.table import IS_DEDUPLICATED, IS_UNEXPIRED, READ_COLUMNS, memory
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner

ROWS = """
    jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
        id text, content text, category text, tags text[], metadata jsonb, importance float8, state text,
        occurred_at timestamptz, namespace text, key text, valid_from timestamptz, valid_until timestamptz,
        expires_at timestamptz, sources jsonb, derived_from text[], reinforcement_count int,
        created_at timestamptz, last_seen_at timestamptz, fingerprint bytea, search_terms text[],
        saved_without_source boolean, decided_by text, verdict text, judge_model text,
        origin_channel text, origin_trust text, origin_key text)
"""
"""The rows of memories that `new_rows` built, as a table."""
INSERT_ROWS = f"""
    INSERT INTO memory (tenant, id, agent_id, user_id, content, category, tags, metadata, importance,
                       state, occurred_at, namespace, key, valid_from, valid_until, expires_at, sources,
                       derived_from, reinforcement_count, created_at, last_seen_at, fingerprint,
                       search_terms, saved_without_source, decided_by, verdict, judge_model,
                       origin_channel, origin_trust, origin_key)
    SELECT :tenant, r.id, :agent_id, :user_id, r.content, r.category, r.tags, r.metadata, r.importance,
           r.state, r.occurred_at, r.namespace, r.key, r.valid_from, r.valid_until, r.expires_at, r.sources,
           r.derived_from, r.reinforcement_count, coalesce(r.created_at, now()),
           coalesce(r.last_seen_at, now()), r.fingerprint, array_to_tsvector(r.search_terms),
           r.saved_without_source, r.decided_by, r.verdict, r.judge_model,
           r.origin_channel, r.origin_trust, r.origin_key
    FROM {ROWS}
    ORDER BY r.namespace, r.key, r.fingerprint
"""  # noqa: S608  (constants only)
"""Inserts them, sorted, so that two batches can't deadlock; a conflict clause follows."""

# Saving a live memory a second time reinforces it. The conflict target is a unique index, so this
# also holds for concurrent saves.
_UPSERT = text(
    f"""
    {INSERT_ROWS}
    ON CONFLICT (tenant, agent_id, user_id, fingerprint)
        WHERE archived_at IS NULL AND key IS NULL AND valid_until IS NULL DO UPDATE SET
        reinforcement_count = least({MAX_REINFORCEMENT_COUNT},
            CAST(memory.reinforcement_count AS bigint) + excluded.reinforcement_count),
        last_seen_at = greatest(memory.last_seen_at, excluded.last_seen_at),
        sources = memory.sources || coalesce(
            (SELECT jsonb_agg(s) FROM jsonb_array_elements(excluded.sources) s
             WHERE NOT memory.sources @> jsonb_build_array(s)), '[]'),
        saved_without_source = memory.saved_without_source OR memory.sources = '[]'
            OR excluded.saved_without_source OR excluded.sources = '[]',
        decided_by = CASE excluded.decided_by WHEN 'caller' THEN 'caller' ELSE memory.decided_by END
    RETURNING memory.*, (xmax = 0) AS inserted
    """  # noqa: S608  (constants only)
)


async def upsert(tx: Transaction, scope: Scope, rows: Sequence[Mapping[str, Any]]) -> list[prepared.Row]:
    """Insert memories, or count another observation of the live ones with the same fingerprint.

    Return the stored rows, locked; their column `inserted` is true if the memory is new. What else an
    existing one gains, `reinforce.widen` adds. A closed memory (with `valid_until`) is always a new one.
    `rows` are built by `new_rows` and have no key; no two open ones may have the same fingerprint.
    """
    await set_aside_expired(tx, scope, [_decoded_fingerprint(row) for row in rows])
    return await tx.fetch(_UPSERT, insert_values(scope, rows))


def insert_values(scope: Scope, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters of `INSERT_ROWS`."""
    return prepared.scope_values(scope) | {"rows": encode_rows(rows)}


def encode_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the parameter of `ROWS`."""
    return orjson.dumps([dict(row) for row in rows]).decode()


def _decoded_fingerprint(row: Mapping[str, Any]) -> bytes:
    return bytes.fromhex(row["fingerprint"].removeprefix("\\x"))


SET_ASIDE = """
    UPDATE memory SET state = 'archived', archived_at = now(), archived_by = 'expiry', superseded_by = '{}'
    WHERE tenant = :tenant AND agent_id = :agent_id AND user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
      AND archived_at IS NULL AND expires_at <= now()
"""
"""Takes expired memories of a scope out of the unique indexes; a further condition follows.

What has expired does not exist for callers, so it may not stand in the way of a save. The sweep deletes it.
"""

_SET_ASIDE = text(f"{SET_ASIDE} AND fingerprint = ANY (:fingerprints)").bindparams(
    bindparam("fingerprints", type_=ARRAY(LargeBinary))
)


async def set_aside_expired(tx: Transaction, scope: Scope, fingerprints: Sequence[bytes]) -> None:
    """Archive the expired memories of a scope that have one of these fingerprints."""
    values = prepared.scope_values(scope) | {"fingerprints": list(fingerprints)}
    await tx.fetch(_SET_ASIDE, values)


async def get(tx: Transaction, caller: Caller, memory_id: str, *, lock: bool = False) -> Memory | None:
    """Return a memory, archived or not, or None if it has expired or the caller may not see it.

    `lock` locks its row.
    """
    is_visible = (tenant_filter(memory, caller.tenant), memory.c.id == memory_id, IS_UNEXPIRED)
    statement = select(memory).where(*is_visible)
    if lock:
        statement = statement.with_for_update()
    row = (await tx.execute(statement)).mappings().one_or_none()
    if row is None or not rights.allows(
        caller, Area.MEMORIES, Action.READ, Owner(row["agent_id"], row["user_id"])
    ):
        return None
    return Memory.from_row(row)


_READ = select(*READ_COLUMNS).where(
    memory.c.tenant == bindparam("tenant"), memory.c.id == any_(bindparam("ids", type_=ARRAY(Text)))
)


async def read(tx: Transaction, ids: Sequence[str]) -> list[Memory]:
    """Return the memories with these ids, in no order."""
    rows = await tx.fetch(_READ, {"tenant": tx.tenant, "ids": list(ids)}) if ids else []
    return [Memory.from_row(row) for row in rows]


_LOCK = _READ.order_by(memory.c.id).with_for_update()


async def lock(tx: Transaction, ids: Sequence[str]) -> list[Memory]:
    """Return the memories with these ids, locked until the transaction ends."""
    rows = await tx.fetch(_LOCK, {"tenant": tx.tenant, "ids": list(ids)}) if ids else []
    return [Memory.from_row(row) for row in rows]


_LOCK_EXISTING = text(
    """
    SELECT id FROM memory
    WHERE tenant = :tenant AND id = ANY (:ids) AND (expires_at IS NULL OR expires_at > now())
    ORDER BY id FOR KEY SHARE
    """
).bindparams(bindparam("ids", type_=ARRAY(Text)))


async def lock_existing(tx: Transaction, ids: Sequence[str]) -> set[str]:
    """Return those of these ids that exist, and keep their memories from being deleted until the end.

    What has expired counts as deleted. Changing the memories stays possible. A transaction that stores a
    copy of a memory's text calls this.
    """
    if not ids:
        return set()
    rows = await tx.fetch(_LOCK_EXISTING, {"tenant": tx.tenant, "ids": list(ids)})
    return {row["id"] for row in rows}


async def select_memories(tx: Transaction, statement: Select[Any]) -> list[Memory]:
    """Run a select on `memory` that another file of statements built."""
    return [Memory.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_newest(
    tx: Transaction,
    limit: int,
    after: tuple[datetime, str] | None,
    *conditions: ColumnElement[bool],
) -> list[Memory]:
    """Return memories that meet the conditions, the last seen first.

    `after` is the (last seen, id) of the last memory of the previous page.
    """
    statement = select(*READ_COLUMNS).where(*conditions)
    if after is not None:
        last_seen_at, memory_id = after
        position = ((memory.c.last_seen_at, last_seen_at, True), (memory.c.id, memory_id, False))
        statement = statement.where(keyset_after(*position))
    newest_first = (memory.c.last_seen_at.desc(), memory.c.id)
    return await select_memories(tx, statement.order_by(*newest_first).limit(limit))


async def list_ids(tx: Transaction, limit: int, *conditions: ColumnElement[bool]) -> list[str]:
    """Return the ids of up to `limit` memories that meet the conditions, in no particular order."""
    return list(await tx.scalars(select(memory.c.id).where(*conditions).limit(limit)))


async def update_columns(tx: Transaction, memory_id: str, values: Mapping[str, Any]) -> Memory:
    """Set columns of one memory and return it."""
    statement = (
        update(memory)
        .where(tenant_filter(memory, tx.tenant), memory.c.id == memory_id)
        .values(dict(values))
        .returning(memory)
    )
    return Memory.from_row((await tx.execute(statement)).mappings().one())


async def find_duplicate(tx: Transaction, scope: Scope, fingerprint: bytes, except_id: str) -> str | None:
    """Return the id of another memory of exactly this scope that says this, or None.

    Memories with a key, and those that are closed or expired, are no duplicates.
    """
    await set_aside_expired(tx, scope, [fingerprint])
    is_duplicate = (
        exact_scope(memory, scope),
        memory.c.fingerprint == fingerprint,
        IS_DEDUPLICATED,
        memory.c.id != except_id,
    )
    duplicate_id: str | None = await tx.scalar(select(memory.c.id).where(*is_duplicate))
    return duplicate_id


_ARCHIVE = (
    update(memory)
    .where(
        memory.c.tenant == bindparam("of_tenant"),
        memory.c.id == any_(bindparam("ids", type_=ARRAY(Text))),
        memory.c.archived_at.is_(None),
    )
    .values(
        state="archived",
        archived_at=func.now(),
        archive_reason=bindparam("reason"),
        archived_by=bindparam("archiver"),
        superseded_by=bindparam("successors"),
        version=memory.c.version + 1,
    )
    .returning(*READ_COLUMNS)
)


async def archive(
    tx: Transaction,
    ids: Sequence[str],
    archiver: Archiver,
    reason: str | None,
    successors: Sequence[str] = (),
) -> list[Memory]:
    """Archive those of these memories that are live, as superseded by `successors`; return them.

    Each gets a new version for the index.
    """
    names = {"of_tenant": tx.tenant, "ids": list(ids), "successors": list(successors)}
    values = names | {"reason": reason, "archiver": archiver.value}
    return [Memory.from_row(row) for row in await tx.fetch(_ARCHIVE, values)]


async def close(tx: Transaction, memory: Memory, at: datetime, successor_id: str) -> Memory:
    """End the validity of a locked memory in favour of a successor, as a new version; return it."""
    values = {"valid_until": at, "superseded_by": [successor_id], "version": memory.version + 1}
    return await update_columns(tx, memory.id, values)


async def reopen(tx: Transaction, memory: Memory, valid_until: datetime | None) -> Memory:
    """Let a locked memory be valid until its earlier end again, as a new version; return it."""
    values: dict[str, Any] = {"valid_until": valid_until, "superseded_by": []}
    values |= {"version": memory.version + 1}
    return await update_columns(tx, memory.id, values)


async def list_derived_only_from(tx: Transaction, ids: Sequence[str]) -> list[str]:
    """Return the ids of the memories that were derived from some of these, and from no others."""
    only_from_ids = memory.c.derived_from.contained_by(list(ids))
    is_derived = func.cardinality(memory.c.derived_from) > 0
    statement = select(memory.c.id).where(tenant_filter(memory, tx.tenant), is_derived, only_from_ids)
    return list((await tx.scalars(statement)).all())
