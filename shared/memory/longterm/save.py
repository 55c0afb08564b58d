"""Save memories: durable and found by keyword when this returns; enriched and embedded later."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

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
from shared.memory.longterm.fingerprint import fingerprint_of
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.search.index.writer import WRITE_THROUGH_SECONDS

SaveItem = tuple[Scope, MemoryDraft]
JsonObject = dict[str, Any]


async def save(
    resources: Resources, scope: Scope, actor: str, draft: MemoryDraft, key: IdempotencyKey | None = None
) -> JsonObject:
    """Save one validated draft and return the memory as JSON: the new one, or the one it reinforced."""
    return (await save_all(resources, scope.tenant, actor, [(scope, draft)], key))[0]


async def save_all(
    resources: Resources,
    tenant: str,
    actor: str,
    items: Sequence[SaveItem],
    key: IdempotencyKey | None = None,
    rejected: Mapping[int, JsonObject] | None = None,
) -> list[JsonObject]:
    """Save validated drafts in one transaction; return a memory as JSON for each, in order.

    Drafts of the same content become one memory. `rejected` holds results that are settled already, by
    their position in the response. If a request with this `key` was done before, nothing is saved and
    its stored response is returned, after what it left unindexed is written through.
    """
    commit = partial(_commit, resources, tenant, actor, items, key, rejected or {})
    try:
        commit_result = await commit()
    except IntegrityError:  # an id of 48 random bits was taken; the second attempt draws others
        commit_result = await commit()
    if commit_result.is_repeated:
        ids = [result["id"] for result in commit_result.response if "id" in result]
        await resources.index_writer.write_through_unindexed(
            tenant, RecordKind.MEMORY, ids, index_document.load_documents
        )
        return commit_result.response
    documents = [index_document.document(memory) for memory in commit_result.changed_memories]
    await resources.index_writer.write_through(documents, commit_result.jobs)
    if any(memory.state is MemoryState.PENDING for memory in commit_result.changed_memories):
        resources.publisher.wake(stages.ENRICH, len(commit_result.changed_memories))
    return commit_result.response


class _CommitResult(NamedTuple):
    """A response, and the new or changed memories with their index jobs."""

    response: list[JsonObject]
    changed_memories: Sequence[Memory] = ()
    jobs: Sequence[Job] = ()
    is_repeated: bool = False


async def _commit(
    resources: Resources,
    tenant: str,
    actor: str,
    items: Sequence[SaveItem],
    key: IdempotencyKey | None,
    rejected: Mapping[int, JsonObject],
) -> _CommitResult:
    async with (
        resources.postgres.for_tenant(tenant) as connection,
        idempotent(connection, tenant, key) as request,
    ):
        if request.stored is not None:
            return _CommitResult(request.stored, is_repeated=True)
        can_enrich = resources.language_model is not None
        by_scope = {
            scope: await _save_scope(connection, scope, actor, drafts, can_enrich=can_enrich)
            for scope, drafts in _group_by_scope(items).items()
        }
        for scope in by_scope:
            await dream_schedule.schedule_dream(connection, resources.settings, scope)
        changed_memories = [
            memory
            for memories in by_scope.values()
            for memory, is_searchably_changed in memories.values()
            if is_searchably_changed
        ]
        jobs = await enqueue_jobs(connection, tenant, changed_memories)
        saved_memories = [
            by_scope[scope][fingerprint_of(draft)][0].model_dump(mode="json") for scope, draft in items
        ]
        response = batch_results.merge_results(saved_memories, rejected)
        memory_ids = sorted({memory["id"] for memory in saved_memories})
        user_id = items[0][0].user_id if items else None
        await request.store(response, record_ids=memory_ids, user_id=user_id)
    return _CommitResult(response, changed_memories, jobs)


def _group_by_scope(items: Sequence[SaveItem]) -> dict[Scope, list[MemoryDraft]]:
    groups: dict[Scope, list[MemoryDraft]] = {}
    for scope, draft in items:
        groups.setdefault(scope, []).append(draft)
    # In the same order everywhere, so that two batches over the same scopes can't deadlock.
    return dict(sorted(groups.items(), key=lambda group: (group[0].agent_id, group[0].user_id or "")))


async def enqueue_jobs(connection: AsyncConnection, tenant: str, memories: Sequence[Memory]) -> list[Job]:
    """Enqueue the jobs of new or changed memories; return the index jobs, for write-through."""
    if not memories:
        return []
    pending_versions = {
        memory.id: memory.version for memory in memories if memory.state is MemoryState.PENDING
    }
    await job_queries.enqueue(connection, tenant, RecordKind.MEMORY, stages.ENRICH, pending_versions)
    versions = {memory.id: memory.version for memory in memories}
    return await index_jobs.enqueue_index_jobs(
        connection, tenant, RecordKind.MEMORY, versions, delay=WRITE_THROUGH_SECONDS
    )


async def _save_scope(
    connection: AsyncConnection, scope: Scope, actor: str, drafts: Sequence[MemoryDraft], *, can_enrich: bool
) -> dict[bytes, tuple[Memory, bool]]:
    """Save drafts of one scope; return the stored memory for each fingerprint.

    The second item of a value is true if a searchable field changed, so that the memory must be indexed.
    """
    groups = _group_by_fingerprint(drafts)
    await tombstones.remove(connection, scope, [group[0].content for group in groups.values()])
    stored_memories = await _reinforce_successors(connection, scope, actor, list(groups))
    new_groups = [group for fingerprint_, group in groups.items() if fingerprint_ not in stored_memories]
    if new_groups:
        rows = [_merged_row(group, can_enrich=can_enrich) for group in new_groups]
        tags = {row["fingerprint"]: row["tags"] for row in rows}
        upserted_rows = await queries.upsert(connection, scope, rows)
        for row in upserted_rows:
            new_tags = tags["\\x" + bytes(row["fingerprint"]).hex()]
            stored_memories[bytes(row["fingerprint"])] = await _add_new_tags(connection, row, new_tags)
        created_memories = [Memory.from_row(row) for row in upserted_rows if row["inserted"]]
        reinforced = [Memory.from_row(row) for row in upserted_rows if not row["inserted"]]
        await history.add(connection, actor, "created", created_memories)
        await history.add(connection, actor, "reinforced", reinforced)
    return stored_memories


async def _add_new_tags(
    connection: AsyncConnection, row: RowMapping, tags: Sequence[str]
) -> tuple[Memory, bool]:
    """Add the tags that a reinforced memory lacks; return it, and whether a searchable field changed."""
    if row["inserted"]:
        return Memory.from_row(row), True
    tagged_memory = await queries.add_tags(connection, row["tenant"], row["id"], tags) if tags else None
    return (tagged_memory, True) if tagged_memory else (Memory.from_row(row), False)


def _group_by_fingerprint(drafts: Iterable[MemoryDraft]) -> dict[bytes, list[MemoryDraft]]:
    groups: dict[bytes, list[MemoryDraft]] = {}
    for draft in drafts:
        groups.setdefault(fingerprint_of(draft), []).append(draft)
    return groups


async def _reinforce_successors(
    connection: AsyncConnection, scope: Scope, actor: str, fingerprints: Sequence[bytes]
) -> dict[bytes, tuple[Memory, bool]]:
    """Reinforce the successors of archived memories with these fingerprints; return the first of each."""
    stored_memories: dict[bytes, tuple[Memory, bool]] = {}
    successors = await queries.find_successors(connection, scope, fingerprints)
    for fingerprint_, ids in successors.items():
        reinforced = await queries.reinforce(connection, scope, ids)
        await history.add(connection, actor, "reinforced", reinforced, "its source was saved again")
        if reinforced:
            stored_memories[fingerprint_] = (reinforced[0], False)
    return stored_memories


def _merged_row(drafts: Sequence[MemoryDraft], *, can_enrich: bool) -> dict[str, Any]:
    """Return the row of one memory for drafts of the same content."""
    is_pending = can_enrich and any(draft.enrich for draft in drafts)
    sources = [draft.source.model_dump() for draft in drafts if draft.source]
    tags = tuple(dict.fromkeys(tag for draft in drafts for tag in draft.tags))
    return new_rows.row_from_draft(
        drafts[0].model_copy(update={"tags": tags}),
        MemoryState.PENDING if is_pending else MemoryState.FINAL,
        importance=max(draft.importance for draft in drafts),
        sources=[source for i, source in enumerate(sources) if source not in sources[:i]],
        reinforcement_count=len(drafts),
    )
