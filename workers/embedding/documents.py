"""Load the index documents of records of any kind, each in a transaction of its tenant."""

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
    resources: Resources, jobs: Sequence[Job]
) -> dict[tuple[str, RecordKind, str], IndexDocument]:
    """Return the documents of the records that still exist, by (tenant, kind, record id)."""
    documents_by_key: dict[tuple[str, RecordKind, str], IndexDocument] = {}
    for (tenant, kind), record_ids in _group(jobs).items():
        for document in await _LOADERS[kind](resources, tenant, record_ids):
            documents_by_key[(tenant, kind, document.record_id)] = document
    return documents_by_key


def _group(jobs: Sequence[Job]) -> dict[tuple[str, RecordKind], list[str]]:
    groups: dict[tuple[str, RecordKind], list[str]] = {}
    for job in jobs:
        groups.setdefault((job.tenant, job.kind), []).append(job.record_id)
    return groups


async def _load_memories(resources: Resources, tenant: str, record_ids: Sequence[str]) -> list[IndexDocument]:
    async with resources.postgres.for_tenant(tenant) as connection:
        memories = await memory_queries.read(connection, tenant, record_ids)
    return [memory_document.document(memory) for memory in memories]


async def _load_turns(resources: Resources, tenant: str, record_ids: Sequence[str]) -> list[IndexDocument]:
    async with resources.postgres.for_tenant(tenant) as connection:
        rows = await turn_queries.load_rows(connection, tenant, record_ids)
    return [turn_document.document_from_row(row) for row in rows]


async def _load_working(resources: Resources, tenant: str, record_ids: Sequence[str]) -> list[IndexDocument]:
    working_memory = WorkingMemory(resources.redis, resources.settings, tenant)
    with redis_client.failures_as_unavailable():
        entries = await working_queries.read_many(working_memory, record_ids)
    return [working_document.document(tenant, entry) for entry in entries.values()]


async def _load_observations(
    resources: Resources, tenant: str, record_ids: Sequence[str]
) -> list[IndexDocument]:
    async with resources.postgres.for_tenant(tenant) as connection:
        observations = await observation_queries.list_by_ids(connection, tenant, record_ids)
    return [observation_document.document(observation) for observation in observations]


_LOADERS: dict[RecordKind, Load] = {
    RecordKind.MEMORY: _load_memories,
    RecordKind.TURN: _load_turns,
    RecordKind.WORKING: _load_working,
    RecordKind.OBSERVATION: _load_observations,
}
