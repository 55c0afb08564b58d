"""Save memories: durable and found by keyword when this returns; enriched and embedded later."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import batch_results, stages
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState, RecordKind
from shared.jobs import dream_schedule, index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.memory.longterm import (
    history,
    index_document,
    labels,
    new_rows,
    queries,
    reinforce,
    successor_queries,
    tombstones,
)
from shared.memory.longterm.fingerprint import fingerprint_of
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.memory.longterm.reinforce import Addition
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
        changed_memories = [memory for saved in by_scope.values() for memory in saved.changed.values()]
        jobs = await enqueue_jobs(connection, tenant, changed_memories)
        saved_memories = [
            by_scope[scope].by_fingerprint[fingerprint_of(draft)].model_dump(mode="json")
            for scope, draft in items
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


@dataclass(slots=True)
class _SavedScope:
    """What was saved in one scope.

    `changed` are the memories, by id, of which a searchable field changed, so that they must be indexed.
    """

    by_fingerprint: dict[bytes, Memory] = field(default_factory=dict)
    changed: dict[str, Memory] = field(default_factory=dict)

    def add(self, fingerprint_: bytes, memory: Memory, version_before: int | None) -> None:
        self.by_fingerprint.setdefault(fingerprint_, memory)
        if memory.version != version_before:
            self.changed[memory.id] = memory


async def _save_scope(
    connection: AsyncConnection, scope: Scope, actor: str, drafts: Sequence[MemoryDraft], *, can_enrich: bool
) -> _SavedScope:
    """Save drafts of one scope; return the stored memory for each fingerprint, and what is to be indexed."""
    groups = _group_by_fingerprint(drafts)
    await tombstones.remove(connection, scope, [group[0].content for group in groups.values()])
    rows = {fingerprint_: _merged_row(group, can_enrich=can_enrich) for fingerprint_, group in groups.items()}
    saved = await _reinforce_successors(connection, scope, actor, rows)
    remaining = {key: row for key, row in rows.items() if key not in saved.by_fingerprint}
    if remaining:
        await _upsert(connection, scope, actor, remaining, saved)
    return saved


async def _upsert(
    connection: AsyncConnection,
    scope: Scope,
    actor: str,
    rows: Mapping[bytes, JsonObject],
    saved: _SavedScope,
) -> None:
    """Insert rows, or reinforce the live memories with the same fingerprints."""
    created: list[Memory] = []
    reinforced: list[Memory] = []
    for row in await queries.upsert(connection, scope, list(rows.values())):
        fingerprint_, memory = bytes(row["fingerprint"]), Memory.from_row(row)
        if row["inserted"]:
            created.append(memory)
            saved.add(fingerprint_, memory, None)
        else:
            addition = Addition(tags=rows[fingerprint_]["tags"])
            reinforced.append(await reinforce.add_labels(connection, memory, addition))
            saved.add(fingerprint_, reinforced[-1], memory.version)
    await history.add(connection, actor, "created", created)
    await history.add(connection, actor, "reinforced", reinforced)


def _group_by_fingerprint(drafts: Iterable[MemoryDraft]) -> dict[bytes, list[MemoryDraft]]:
    groups: dict[bytes, list[MemoryDraft]] = {}
    for draft in drafts:
        groups.setdefault(fingerprint_of(draft), []).append(draft)
    return groups


async def _reinforce_successors(
    connection: AsyncConnection, scope: Scope, actor: str, rows: Mapping[bytes, JsonObject]
) -> _SavedScope:
    """Reinforce what archived memories with these fingerprints became; the first of each stands for it."""
    saved = _SavedScope()
    successors = await successor_queries.find_live_successors(connection, scope, list(rows))
    ids = sorted({memory_id for ids in successors.values() for memory_id in ids})
    # Locked in one order, so that two batches can't deadlock.
    locked_memories = {memory.id: memory for memory in await queries.lock(connection, scope.tenant, ids)}
    for fingerprint_, successor_ids in successors.items():
        addition = Addition.from_row(rows[fingerprint_])
        for memory_id in successor_ids:
            before = locked_memories.get(memory_id)
            if before is None or before.archived_at is not None:
                continue
            memory = await reinforce.reinforce(connection, before, addition)
            await history.add(connection, actor, "reinforced", [memory], "its source was saved again")
            locked_memories[memory_id] = memory
            saved.add(fingerprint_, memory, before.version)
    return saved


def _merged_row(drafts: Sequence[MemoryDraft], *, can_enrich: bool) -> dict[str, Any]:
    """Return the row of one memory for drafts of the same content."""
    is_pending = can_enrich and any(draft.enrich for draft in drafts)
    sources = [draft.source.model_dump() for draft in drafts if draft.source]
    tags = tuple(labels.join_tags((), [tag for draft in drafts for tag in draft.tags]))
    return new_rows.row_from_draft(
        drafts[0].model_copy(update={"tags": tags}),
        MemoryState.PENDING if is_pending else MemoryState.FINAL,
        importance=max(draft.importance for draft in drafts),
        sources=[source for i, source in enumerate(sources) if source not in sources[:i]],
        reinforcement_count=len(drafts),
    )
