"""Save memories: durable and found by keyword when this returns; enriched and embedded later."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy.exc import IntegrityError

from shared.foundation import batch_results, errors, stages
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import MemoryState, RecordKind
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.jobs import dream_schedule
from shared.jobs import queries as job_queries
from shared.memory.longterm import index_document, source_check
from shared.memory.longterm.memory import Memory, MemoryDraft, SavedDraft
from shared.memory.longterm.save_scope import save_scope
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

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

    A draft whose source the caller may not name, or that asks for more trust than it has, is left out. Its
    result is what `problem_of` makes of the error; without it, the error is raised.

    Drafts of the same content become one memory, and those of one key replace one another. `rejected` holds
    results that are settled already, by their position in the response. If a request with this `key` was done
    before, nothing is saved and its stored response is returned, after what it left unindexed is written
    through.
    """
    commit = partial(_commit, resources, caller, items, key, rejected or {}, problem_of)
    try:
        return await commit()
    except IntegrityError:  # an id of 48 random bits was taken; the second attempt draws others
        return await commit()


async def index(tx: RecordTransaction, memories: Sequence[Memory]) -> None:
    """Let new or changed memories be found by keyword, and enriched if they wait for it, after the commit."""
    pending_versions = {
        memory.id: memory.version for memory in memories if memory.state is MemoryState.PENDING
    }
    if pending_versions:
        await job_queries.enqueue(tx, tx.tenant, RecordKind.MEMORY, stages.ENRICH, pending_versions)
        tx.wake(stages.ENRICH, len(pending_versions))
    await tx.index([index_document.document(memory) for memory in memories])


def index_repeated(tx: RecordTransaction, memory_ids: Sequence[str]) -> None:
    """Write through to the index what the first try of a repeated request left unindexed."""
    tx.index_repeated(RecordKind.MEMORY, memory_ids, index_document.load_documents)


@repeated_after_deadlock
async def _commit(
    resources: Resources,
    caller: Caller,
    items: Sequence[SaveItem],
    key: IdempotencyKey | None,
    rejected: Mapping[int, JsonObject],
    problem_of: ProblemOf | None,
) -> list[JsonObject]:
    async with resources.transaction(caller.tenant) as tx, idempotent(tx, key) as request:
        stored: list[JsonObject] | None = request.stored
        if stored is not None:
            index_repeated(tx, [result["id"] for result in stored if "id" in result])
            return stored
        checked = await source_check.check(tx, caller, [draft for _, draft in items])
        problems = _problems(checked, problem_of)
        items = [item for position, item in enumerate(items) if position not in problems]
        saved_drafts = [draft for draft in checked if isinstance(draft, SavedDraft)]
        can_enrich = resources.language_model is not None
        saved: dict[int, Memory] = {}
        changed_memories: list[Memory] = []
        for scope, positions in _group_by_scope(items).items():
            drafts = [saved_drafts[position] for position in positions]
            saved_scope = await save_scope(tx, scope, caller.key_id, drafts, can_enrich=can_enrich)
            saved |= {positions[i]: memory for i, memory in saved_scope.by_position.items()}
            changed_memories += saved_scope.changed.values()
            await dream_schedule.schedule_dream(tx, resources.settings, scope)
        await index(tx, changed_memories)
        saved_memories = [saved[position].model_dump(mode="json") for position in range(len(items))]
        response = batch_results.merge_results(
            batch_results.merge_results(saved_memories, problems), rejected
        )
        memory_ids = sorted({memory["id"] for memory in saved_memories})
        user_id = items[0][0].user_id if items else None
        await request.store(response, record_ids=memory_ids, user_id=user_id)
        return response


def _problems(
    checked: Sequence[SavedDraft | errors.Invalid], problem_of: ProblemOf | None
) -> dict[int, JsonObject]:
    """Return the results of items that are refused, by their positions."""
    faults = {position: error for position, error in enumerate(checked) if isinstance(error, errors.Invalid)}
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
