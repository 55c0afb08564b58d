"""Import a batch of lines: one transaction, then the index, as with a save.

The state that was planned for may change before the plan is carried out: a concurrent save may use a
fingerprint, or another import an id. Then a unique index is violated, and the batch is planned anew.
"""

from collections.abc import Sequence

from sqlalchemy.exc import IntegrityError

from shared.foundation import errors
from shared.foundation.origin import Channel
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import Pipeline, RecordKind
from shared.infra.postgres import transaction_time
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries
from shared.lifecycle import erasure_queries
from shared.lifecycle.erasure_queries import Erasures
from shared.lifecycle.transfer import id_mapping, row_ids
from shared.lifecycle.transfer.import_plan import ImportPlan, ImportState, plan
from shared.lifecycle.transfer.ndjson import MemoryLine
from shared.memory.longterm import history, save, scope_queries, tombstones
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.fingerprint import fingerprint_of
from shared.memory.longterm.memory import Source
from shared.memory.longterm.source_check import NamedSources
from shared.platform.resources import Resources

_MAX_ATTEMPTS = 5


async def import_batch(
    resources: Resources,
    scope: Scope,
    caller: Caller,
    lines: Sequence[MemoryLine],
    erasures: Erasures,
    *,
    restore: bool,
    moves_sessions: bool = False,
) -> ImportPlan:
    """Import lines, no two of the same id, and return the plan that was carried out.

    With `moves_sessions`, sources name sessions by the ids that these were imported with.
    Raises errors.Busy if others keep writing the same memories, and errors.Conflict if the user or agent
    was erased since `erasures` was read.
    """
    for _ in range(_MAX_ATTEMPTS):
        try:
            return await _commit(
                resources, scope, caller, lines, erasures, restore=restore, moves_sessions=moves_sessions
            )
        except IntegrityError:
            continue
    raise errors.Busy("others are writing these memories; what was imported so far is stored: try again")


async def _commit(
    resources: Resources,
    scope: Scope,
    caller: Caller,
    lines: Sequence[MemoryLine],
    erasures: Erasures,
    *,
    restore: bool,
    moves_sessions: bool,
) -> ImportPlan:
    can_enrich = resources.language_model is not None
    async with resources.transaction(scope.tenant) as tx:
        await erasure_queries.require_not_erased(tx, scope, erasures)
        if moves_sessions:
            lines = await _with_moved_sources(tx, scope, lines)
        state = await _load_state(tx, scope, caller, lines, can_enrich=can_enrich, restore=restore)
        refused = await _find_refused(tx, caller, state, lines)
        executed_plan = plan(state, [line for line in lines if line.id not in refused])
        executed_plan.refused = [(line, refused[line.id]) for line in lines if line.id in refused]
        for before, after in executed_plan.updated:
            await scope_queries.replace_memory(tx, after)
            await history.add_update(tx, caller.key_id, before, after)
        await scope_queries.insert_memories(tx, executed_plan.created)
        await history.add(tx, caller.key_id, "imported", executed_plan.created)
        if restore:
            stored_memories = [*executed_plan.created, *(after for _, after in executed_plan.updated)]
            await tombstones.remove(tx, scope, [memory.content for memory in stored_memories])
        await job_queries.cancel(tx, RecordKind.MEMORY, executed_plan.no_longer_pending, Pipeline.ENRICHMENT)
        await save.index(tx, executed_plan.reindexed)
        return executed_plan


async def _with_moved_sources(tx: Transaction, scope: Scope, lines: Sequence[MemoryLine]) -> list[MemoryLine]:
    """Return lines whose sources name imported sessions by the ids that these have here."""
    named = {source.session_id for line in lines for source in line.sources}
    ids = await row_ids.find_moved_sessions(tx, scope, named)
    return [line.with_sessions(ids) if ids else line for line in lines]


async def _find_refused(
    tx: Transaction, caller: Caller, state: ImportState, lines: Sequence[MemoryLine]
) -> dict[str, str]:
    """Return the rules that lines break whose sources the caller may not name, by the ids of the lines."""
    added: list[tuple[str, str, Source]] = []
    for line in lines:
        memory = state.memories.get(state.ids[line.id])
        known = [] if memory is None else memory.sources
        added += [(line.id, f"sources.{n}", item) for n, item in enumerate(line.sources) if item not in known]
    named = await NamedSources.read(tx, caller, [source for _, _, source in added])
    refused: dict[str, str] = {}
    for line_id, field, source in added:
        fault = named.fault(source, field)
        if fault is not None:
            refused.setdefault(line_id, str(fault))
    return refused


async def _load_state(
    tx: Transaction,
    scope: Scope,
    caller: Caller,
    lines: Sequence[MemoryLine],
    *,
    can_enrich: bool,
    restore: bool,
) -> ImportState:
    line_ids = {line.id for line in lines}
    ids = await id_mapping.map_ids(tx, scope, line_ids.union(*(line.references for line in lines)))
    memories = await memory_queries.lock(tx, [ids[line_id] for line_id in line_ids])
    contents = [line.content for line in lines]
    return ImportState(
        scope=scope,
        importer=caller.via(Channel.IMPORT).origin,
        now=await transaction_time(tx),
        can_enrich=can_enrich,
        ids=ids,
        memories={memory.id: memory for memory in memories},
        ids_by_fingerprint=await scope_queries.ids_by_fingerprint(
            tx, scope, [fingerprint_of(line) for line in lines]
        ),
        ids_by_key=await scope_queries.ids_by_key(
            tx, scope, [line.key for line in lines if line.key is not None]
        ),
        deleted_contents=frozenset(() if restore else await tombstones.find_deleted(tx, scope, contents)),
    )
