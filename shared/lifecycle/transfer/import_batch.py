"""Store a batch of lines: one transaction, then the index, as with a save.

What the plan was made from may change before it is carried out: a save takes a fact, an import
elsewhere an id. The unique indexes notice, and the batch is planned anew.
"""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors, stages
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState, Pipeline, RecordKind
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.lifecycle.transfer import id_mapping
from shared.lifecycle.transfer.import_plan import ImportPlan, ImportState, plan
from shared.lifecycle.transfer.ndjson import MemoryLine
from shared.memory.longterm import history, save, scope_queries, tombstones
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.fingerprint import fingerprint
from shared.platform.resources import Resources

_TRIES = 5


async def import_batch(
    resources: Resources, scope: Scope, actor: str, lines: Sequence[MemoryLine], *, restore: bool
) -> ImportPlan:
    """Store lines (no two of the same id) and return what was done.

    Raises errors.Busy when others keep writing the same entries.
    """
    for _ in range(_TRIES):
        try:
            done, claims = await _commit(resources, scope, actor, lines, restore=restore)
        except IntegrityError:
            continue
        await resources.index_writer.write_through(
            [memory_document.document(one) for one in done.reindexed], claims
        )
        pending = sum(one.state is MemoryState.PENDING for one in done.reindexed)
        if pending:
            resources.publisher.wake(stages.ENRICH, pending)
        return done
    raise errors.Busy("others are writing these memories; what was imported so far is stored: try again")


async def _commit(
    resources: Resources, scope: Scope, actor: str, lines: Sequence[MemoryLine], *, restore: bool
) -> tuple[ImportPlan, list[Job]]:
    enriching = resources.language_model is not None
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        known = await _look(connection, scope, lines, enriching=enriching, restore=restore)
        decided = plan(known, lines)
        for before, after in decided.updated:
            await scope_queries.replace_memory(connection, after)
            await history.add_update(connection, actor, before, after)
        await scope_queries.insert_memories(connection, decided.created)
        await history.add(connection, actor, "imported", decided.created)
        if restore:
            stored = [*decided.created, *(after for _, after in decided.updated)]
            await tombstones.remove(connection, scope, [one.content for one in stored])
        await job_queries.cancel(
            connection, scope.tenant, RecordKind.MEMORY, decided.no_longer_pending, Pipeline.ENRICHMENT
        )
        return decided, await save.enqueue_jobs(connection, scope.tenant, decided.reindexed)


async def _look(
    connection: AsyncConnection, scope: Scope, lines: Sequence[MemoryLine], *, enriching: bool, restore: bool
) -> ImportState:
    named = {line.id for line in lines}
    ids = await id_mapping.map_ids(
        connection, scope, named.union(*(line.superseded_by + line.derived_from for line in lines))
    )
    entries = await memory_queries.lock(connection, scope.tenant, [ids[one] for one in named])
    contents = [line.content for line in lines]
    return ImportState(
        scope=scope,
        now=(await connection.execute(select(func.now()))).scalar_one(),
        enriching=enriching,
        ids=ids,
        entries={one.id: one for one in entries},
        facts=await scope_queries.ids_by_fingerprint(
            connection, scope, [fingerprint(x.content, x.occurred_at) for x in lines]
        ),
        forgotten=frozenset(() if restore else await tombstones.find_deleted(connection, scope, contents)),
    )
