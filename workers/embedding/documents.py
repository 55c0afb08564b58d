"""Read records of any kind as the index sees them, in their tenant's own transaction."""

from collections.abc import Awaitable, Callable, Sequence

from shared.conversation.observations import index_document as observation_document
from shared.conversation.observations import queries as observation_queries
from shared.conversation.turns import index_document as turn_document
from shared.conversation.turns import queries as turn_queries
from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.jobs.job import Job
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.working import index_document as working_document
from shared.memory.working import queries as working_queries
from shared.memory.working.queries import WorkingMemory
from shared.platform.resources import Resources
from shared.search.index.points import IndexDocument

Load = Callable[[Resources, str, Sequence[str]], Awaitable[list[IndexDocument]]]


async def load_documents(
    resources: Resources, claims: Sequence[Job]
) -> dict[tuple[str, RecordKind, str], IndexDocument]:
    """Return the documents of the records that still exist, by (tenant, kind, ref)."""
    found: dict[tuple[str, RecordKind, str], IndexDocument] = {}
    for (tenant, kind), record_ids in _grouped(claims).items():
        for document in await _LOADERS[kind](resources, tenant, record_ids):
            found[(tenant, kind, document.record_id)] = document
    return found


def _grouped(claims: Sequence[Job]) -> dict[tuple[str, RecordKind], list[str]]:
    groups: dict[tuple[str, RecordKind], list[str]] = {}
    for claim in claims:
        groups.setdefault((claim.tenant, claim.kind), []).append(claim.record_id)
    return groups


async def _memories(resources: Resources, tenant: str, record_ids: Sequence[str]) -> list[IndexDocument]:
    async with resources.postgres.for_tenant(tenant) as connection:
        entries = await memory_queries.read(connection, tenant, record_ids)
    return [memory_document.document(entry) for entry in entries]


async def _turns(resources: Resources, tenant: str, record_ids: Sequence[str]) -> list[IndexDocument]:
    async with resources.postgres.for_tenant(tenant) as connection:
        rows = await turn_queries.load_rows(connection, tenant, record_ids)
    return [turn_document.of_row(row) for row in rows]


async def _desk(resources: Resources, tenant: str, record_ids: Sequence[str]) -> list[IndexDocument]:
    with redis_client.failures_as_unavailable():
        entries = await working_queries.read_many(
            WorkingMemory(resources.redis, resources.settings, tenant), record_ids
        )
    return [working_document.document(tenant, entry) for entry in entries.values()]


async def _observations(resources: Resources, tenant: str, record_ids: Sequence[str]) -> list[IndexDocument]:
    async with resources.postgres.for_tenant(tenant) as connection:
        found = await observation_queries.read(connection, tenant, record_ids)
    return [observation_document.document(observed) for observed in found]


_LOADERS: dict[RecordKind, Load] = {
    RecordKind.MEMORY: _memories,
    RecordKind.TURN: _turns,
    RecordKind.WORKING: _desk,
    RecordKind.OBSERVATION: _observations,
}
