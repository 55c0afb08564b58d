"""Save entries: durable when this returns, found by keyword at once, enriched and embedded later."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import RowMapping
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import batch_results, stages
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState, RecordKind
from shared.jobs import dream_schedule, index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.memory.longterm import history, index_document, new_rows, queries, tombstones
from shared.memory.longterm.fingerprint import fingerprint
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.platform.idempotency.queries import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.search.index.writer import WRITE_THROUGH_SECONDS

SaveItem = tuple[Scope, MemoryDraft]
JsonObject = dict[str, Any]


async def save(
    resources: Resources, scope: Scope, actor: str, draft: MemoryDraft, key: IdempotencyKey | None = None
) -> JsonObject:
    """Save one checked draft and return the entry as JSON: the new one, or the one it reinforced."""
    return (await save_all(resources, scope.tenant, actor, [(scope, draft)], key))[0]


async def save_all(
    resources: Resources,
    tenant: str,
    actor: str,
    offers: Sequence[SaveItem],
    key: IdempotencyKey | None = None,
    refused: Mapping[int, JsonObject] | None = None,
) -> list[JsonObject]:
    """Save checked drafts in one transaction; return an entry for each, in order.

    Drafts that say the same fold into one entry. `refused` are answers that stand already, by
    their place among the answers. With a `key` that was seen before nothing is done at all
    and the stored answer is returned.
    """
    save_once = partial(_commit, resources, tenant, actor, offers, key, refused or {})
    try:
        answer, saved, claims = await save_once()
    except IntegrityError:  # an id of 48 random bits was taken; the next draw will not be
        answer, saved, claims = await save_once()
    await resources.index_writer.write_through([index_document.document(entry) for entry in saved], claims)
    if any(entry.state is MemoryState.PENDING for entry in saved):
        resources.publisher.wake(stages.ENRICH, len(saved))
    return answer


async def _commit(
    resources: Resources,
    tenant: str,
    actor: str,
    offers: Sequence[SaveItem],
    key: IdempotencyKey | None,
    refused: Mapping[int, JsonObject],
) -> tuple[list[JsonObject], list[Memory], list[Job]]:
    async with (
        resources.postgres.for_tenant(tenant) as connection,
        idempotent(connection, tenant, key) as request,
    ):
        if request.stored is not None:
            return request.stored, [], []
        enriching = resources.language_model is not None
        by_scope = {
            scope: await _record(connection, scope, actor, drafts, enriching=enriching)
            for scope, drafts in _grouped(offers).items()
        }
        for scope in by_scope:
            await dream_schedule.schedule_dream(connection, resources.settings, scope)
        changed = [entry for facts in by_scope.values() for entry, reindex in facts.values() if reindex]
        claims = await enqueue_jobs(connection, tenant, changed)
        entries = [by_scope[scope][_fact(draft)][0].model_dump(mode="json") for scope, draft in offers]
        answer = batch_results.merge_results(entries, refused)
        ids, user = sorted({entry["id"] for entry in entries}), offers[0][0].user_id if offers else None
        await request.store(answer, record_ids=ids, user_id=user)
    return answer, changed, claims


def _grouped(offers: Sequence[SaveItem]) -> dict[Scope, list[MemoryDraft]]:
    groups: dict[Scope, list[MemoryDraft]] = {}
    for scope, draft in offers:
        groups.setdefault(scope, []).append(draft)
    # In one order everywhere, so that two batches over the same scopes can't wait for each other.
    return dict(sorted(groups.items(), key=lambda group: (group[0].agent_id, group[0].user_id or "")))


async def enqueue_jobs(connection: AsyncConnection, tenant: str, entries: Sequence[Memory]) -> list[Job]:
    """Write what is left to do for new or changed entries; return the index rows to write through."""
    if not entries:
        return []
    pending = {entry.id: entry.version for entry in entries if entry.state is MemoryState.PENDING}
    await job_queries.enqueue(connection, tenant, RecordKind.MEMORY, stages.ENRICH, pending)
    versions = {entry.id: entry.version for entry in entries}
    return await index_jobs.enqueue_index_jobs(
        connection, tenant, RecordKind.MEMORY, versions, delay=WRITE_THROUGH_SECONDS
    )


async def _record(
    connection: AsyncConnection, scope: Scope, actor: str, drafts: Sequence[MemoryDraft], *, enriching: bool
) -> dict[bytes, tuple[Memory, bool]]:
    """Return, for each fact, the entry that holds it and whether the index must hear of it."""
    folded = _folded(drafts)
    await tombstones.remove(connection, scope, [draft.content for draft, _ in folded.values()])
    held = await _reinforce_successors(connection, scope, actor, folded)
    new = [
        _row(draft, twins, enriching=enriching) for fact, (draft, twins) in folded.items() if fact not in held
    ]
    if new:
        upserted = await queries.upsert(connection, scope, new)
        tags = {row["fingerprint"]: row["tags"] for row in new}
        for row in upserted:
            offered = tags["\\x" + bytes(row["fingerprint"]).hex()]
            held[bytes(row["fingerprint"])] = await _settle(connection, row, offered)
        await history.add(
            connection, actor, "created", [Memory.from_row(row) for row in upserted if row["inserted"]]
        )
        await history.add(
            connection, actor, "reinforced", [Memory.from_row(row) for row in upserted if not row["inserted"]]
        )
    return held


async def _settle(connection: AsyncConnection, row: RowMapping, tags: Sequence[str]) -> tuple[Memory, bool]:
    """Union the tags into an entry that was there; tell whether what is searchable changed."""
    if row["inserted"]:
        return Memory.from_row(row), True
    tagged = await queries.add_tags(connection, row["tenant"], row["id"], tags) if tags else None
    return (tagged, True) if tagged else (Memory.from_row(row), False)


def _fact(draft: MemoryDraft) -> bytes:
    return fingerprint(draft.content, draft.occurred_at)


def _folded(drafts: Iterable[MemoryDraft]) -> dict[bytes, tuple[MemoryDraft, list[MemoryDraft]]]:
    """Group drafts by fact: the first of each, and all of them."""
    groups: dict[bytes, tuple[MemoryDraft, list[MemoryDraft]]] = {}
    for draft in drafts:
        groups.setdefault(_fact(draft), (draft, []))[1].append(draft)
    return groups


async def _reinforce_successors(
    connection: AsyncConnection,
    scope: Scope,
    actor: str,
    folded: dict[bytes, tuple[MemoryDraft, list[MemoryDraft]]],
) -> dict[bytes, tuple[Memory, bool]]:
    """A text that was already enriched away strengthens what took its place."""
    held: dict[bytes, tuple[Memory, bool]] = {}
    for fact, successors in (await queries.find_successors(connection, scope, list(folded))).items():
        reinforced = await queries.reinforce(connection, scope, successors)
        await history.add(connection, actor, "reinforced", reinforced, "its source was saved again")
        if reinforced:
            held[fact] = (reinforced[0], False)
    return held


def _row(draft: MemoryDraft, twins: Sequence[MemoryDraft], *, enriching: bool) -> dict[str, Any]:
    pending = enriching and any(twin.enrich for twin in twins)
    sources = [twin.source.model_dump() for twin in twins if twin.source]
    merged = draft.model_copy(update={"tags": tuple(dict.fromkeys(t for d in twins for t in d.tags))})
    return new_rows.row_from_draft(
        merged,
        MemoryState.PENDING if pending else MemoryState.FINAL,
        importance=max(twin.importance for twin in twins),
        sources=[source for i, source in enumerate(sources) if source not in sources[:i]],
        reinforcement_count=len(twins),
    )
