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
from shared.foundation.stages import Kind, State, Track
from shared.jobs import queries as job_queries
from shared.jobs.job import Claim
from shared.lifecycle.transfer import id_mapping
from shared.lifecycle.transfer.import_plan import Known, Plan, plan
from shared.lifecycle.transfer.ndjson import Line
from shared.memory.longterm import history, save, scope_queries, tombstones
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.fingerprint import fingerprint
from shared.platform.resources import Resources

_TRIES = 5


async def adopt(
    resources: Resources, scope: Scope, actor: str, lines: Sequence[Line], *, restore: bool
) -> Plan:
    """Store lines (no two of the same id) and return what was done.

    Raises errors.Busy when others keep writing the same entries.
    """
    for _ in range(_TRIES):
        try:
            done, claims = await _commit(resources, scope, actor, lines, restore=restore)
        except IntegrityError:
            continue
        await resources.writer.write_through(
            [memory_document.document(one) for one in done.reindexed], claims
        )
        pending = sum(one.state is State.PENDING for one in done.reindexed)
        if pending:
            resources.bell.ring(stages.ENRICH, pending)
        return done
    raise errors.Busy("others are writing these memories; what was imported so far is stored: try again")


async def _commit(
    resources: Resources, scope: Scope, actor: str, lines: Sequence[Line], *, restore: bool
) -> tuple[Plan, list[Claim]]:
    enriching = resources.language_model is not None
    async with resources.postgres.tenant(scope.tenant) as connection:
        known = await _look(connection, scope, lines, enriching=enriching, restore=restore)
        decided = plan(known, lines)
        for before, after in decided.updated:
            await scope_queries.replace(connection, after)
            await history.note_change(connection, actor, before, after)
        await scope_queries.add(connection, decided.created)
        await history.note(connection, actor, "imported", decided.created)
        if restore:
            stored = [*decided.created, *(after for _, after in decided.updated)]
            await tombstones.lift(connection, scope, [one.content for one in stored])
        await job_queries.drop(connection, scope.tenant, Kind.MEMORY, decided.settled, Track.ENRICHMENT)
        return decided, await save.hand_on(connection, scope.tenant, decided.reindexed)


async def _look(
    connection: AsyncConnection, scope: Scope, lines: Sequence[Line], *, enriching: bool, restore: bool
) -> Known:
    named = {line.id for line in lines}
    ids = await id_mapping.place(
        connection, scope, named.union(*(line.superseded_by + line.derived_from for line in lines))
    )
    entries = await memory_queries.lock(connection, scope.tenant, [ids[one] for one in named])
    contents = [line.content for line in lines]
    return Known(
        scope=scope,
        now=(await connection.execute(select(func.now()))).scalar_one(),
        enriching=enriching,
        ids=ids,
        entries={one.id: one for one in entries},
        facts=await scope_queries.facts(
            connection, scope, [fingerprint(x.content, x.occurred_at) for x in lines]
        ),
        forgotten=frozenset(() if restore else await tombstones.forgotten(connection, scope, contents)),
    )
