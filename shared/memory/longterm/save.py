"""Save memories: durable and found by keyword when this returns; enriched and embedded later."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy.exc import IntegrityError

from shared.foundation import batch_results, errors, stages
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import MemoryState, RecordKind
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.jobs import dream_schedule, index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.memory.longterm import index_document, source_check
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.memory.longterm.save_scope import save_scope
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.search.index.writer import WRITE_THROUGH_SECONDS

SaveItem = tuple[Scope, MemoryDraft]
JsonObject = dict[str, Any]
ProblemOf = Callable[[errors.LociError], JsonObject]
"""What makes the result of an item of an error."""


async def save(
    resources: Resources, scope: Scope, caller: Caller, draft: MemoryDraft, key: IdempotencyKey | None = None
) -> JsonObject:
    """Save one validated draft and return the memory as JSON: the new one, or the one it reinforced.

    Raises errors.Invalid for a source that the caller may not name.
    """
    return (await save_all(resources, caller, [(scope, draft)], key))[0]


async def save_all(
    resources: Resources,
    caller: Caller,
    items: Sequence[SaveItem],
    key: IdempotencyKey | None = None,
    rejected: Mapping[int, JsonObject] | None = None,
    *,
    problem_of: ProblemOf | None = None,
) -> list[JsonObject]:
    """Save validated drafts in one transaction; return a memory as JSON for each, in order.

    A draft whose source the caller may not name is left out, and its result is what `problem_of` makes of the
    error; without it, the error is raised.

    Drafts of the same content become one memory, and those of one key replace one another. `rejected` holds
    results that are settled already, by their position in the response. If a request with this `key` was done
    before, nothing is saved and its stored response is returned, after what it left unindexed is written
    through.
    """
    commit = partial(_commit, resources, caller, items, key, rejected or {}, problem_of)
    try:
        commit_result = await commit()
    except IntegrityError:  # an id of 48 random bits was taken; the second attempt draws others
        commit_result = await commit()
    if commit_result.is_repeated:
        ids = [result["id"] for result in commit_result.response if "id" in result]
        await index_repeated(resources, caller.tenant, ids)
        return commit_result.response
    await index(resources, commit_result.changed_memories, commit_result.jobs)
    return commit_result.response


async def index(resources: Resources, memories: Sequence[Memory], jobs: Sequence[Job]) -> None:
    """Write changed memories through to the index, after their commit, and call for their enrichment."""
    await resources.index_writer.write_through([index_document.document(memory) for memory in memories], jobs)
    if any(memory.state is MemoryState.PENDING for memory in memories):
        resources.publisher.wake(stages.ENRICH, len(memories))


async def index_repeated(resources: Resources, tenant: str, memory_ids: Sequence[str]) -> None:
    """Write through to the index what the first try of a repeated request left unindexed."""
    await resources.index_writer.write_through_unindexed(
        tenant, RecordKind.MEMORY, memory_ids, index_document.load_documents
    )


class _CommitResult(NamedTuple):
    """A response, and the new or changed memories with their index jobs."""

    response: list[JsonObject]
    changed_memories: Sequence[Memory] = ()
    jobs: Sequence[Job] = ()
    is_repeated: bool = False


@repeated_after_deadlock
async def _commit(
    resources: Resources,
    caller: Caller,
    items: Sequence[SaveItem],
    key: IdempotencyKey | None,
    rejected: Mapping[int, JsonObject],
    problem_of: ProblemOf | None,
) -> _CommitResult:
    tenant = caller.tenant
    async with (
        resources.postgres.for_tenant(tenant) as tx,
        idempotent(tx, key) as request,
    ):
        if request.stored is not None:
            return _CommitResult(request.stored, is_repeated=True)
        problems = await _source_problems(tx, caller, items, problem_of)
        items = [item for position, item in enumerate(items) if position not in problems]
        can_enrich = resources.language_model is not None
        saved: dict[int, Memory] = {}
        changed_memories: list[Memory] = []
        for scope, positions in _group_by_scope(items).items():
            drafts = [items[position][1] for position in positions]
            saved_scope = await save_scope(tx, scope, caller.key_id, drafts, can_enrich=can_enrich)
            saved |= {positions[i]: memory for i, memory in saved_scope.by_position.items()}
            changed_memories += saved_scope.changed.values()
            await dream_schedule.schedule_dream(tx, resources.settings, scope)
        jobs = await enqueue_jobs(tx, changed_memories)
        saved_memories = [saved[position].model_dump(mode="json") for position in range(len(items))]
        response = batch_results.merge_results(
            batch_results.merge_results(saved_memories, problems), rejected
        )
        memory_ids = sorted({memory["id"] for memory in saved_memories})
        user_id = items[0][0].user_id if items else None
        await request.store(response, record_ids=memory_ids, user_id=user_id)
    return _CommitResult(response, changed_memories, jobs)


async def _source_problems(
    tx: Transaction, caller: Caller, items: Sequence[SaveItem], problem_of: ProblemOf | None
) -> dict[int, JsonObject]:
    """Return the results of items whose sources the caller may not name, by the positions of the items."""
    faults = await source_check.find_faults(tx, caller, [draft for _, draft in items])
    if problem_of is None:
        for fault in faults.values():
            raise fault
        return {}
    return {position: problem_of(fault) for position, fault in faults.items()}


def _group_by_scope(items: Sequence[SaveItem]) -> dict[Scope, list[int]]:
    """Return the positions of the items of each scope."""
    groups: dict[Scope, list[int]] = {}
    for position, (scope, _) in enumerate(items):
        groups.setdefault(scope, []).append(position)
    # In the same order everywhere, so that two batches over the same scopes can't deadlock.
    return dict(sorted(groups.items(), key=lambda group: (group[0].agent_id, group[0].user_id or "")))


async def enqueue_jobs(tx: Transaction, memories: Sequence[Memory]) -> list[Job]:
    """Enqueue the jobs of new or changed memories; return the index jobs, for write-through."""
    if not memories:
        return []
    pending_versions = {
        memory.id: memory.version for memory in memories if memory.state is MemoryState.PENDING
    }
    await job_queries.enqueue(tx, tx.tenant, RecordKind.MEMORY, stages.ENRICH, pending_versions)
    versions = {memory.id: memory.version for memory in memories}
    return await index_jobs.enqueue_index_jobs(
        tx, tx.tenant, RecordKind.MEMORY, versions, delay=WRITE_THROUGH_SECONDS
    )
