"""Read records of any kind as the index sees them, in their tenant's own transaction."""

from collections.abc import Awaitable, Callable, Sequence

from shared.conversation.observations import index_document as observation_document
from shared.conversation.observations import queries as observation_queries
from shared.conversation.turns import index_document as turn_document
from shared.conversation.turns import queries as turn_queries
from shared.foundation.stages import Kind
from shared.infra import redis as redis_client
from shared.jobs.job import Claim
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.working import index_document as working_document
from shared.memory.working import queries as working_queries
from shared.memory.working.queries import Desk
from shared.platform.resources import Resources
from shared.search.index.points import Document

Load = Callable[[Resources, str, Sequence[str]], Awaitable[list[Document]]]


async def load(resources: Resources, claims: Sequence[Claim]) -> dict[tuple[str, Kind, str], Document]:
    """Return the documents of the records that still exist, by (tenant, kind, ref)."""
    found: dict[tuple[str, Kind, str], Document] = {}
    for (tenant, kind), refs in _grouped(claims).items():
        for document in await _LOADERS[kind](resources, tenant, refs):
            found[(tenant, kind, document.ref)] = document
    return found


def _grouped(claims: Sequence[Claim]) -> dict[tuple[str, Kind], list[str]]:
    groups: dict[tuple[str, Kind], list[str]] = {}
    for claim in claims:
        groups.setdefault((claim.tenant, claim.kind), []).append(claim.ref)
    return groups


async def _memories(resources: Resources, tenant: str, refs: Sequence[str]) -> list[Document]:
    async with resources.postgres.tenant(tenant) as connection:
        entries = await memory_queries.read(connection, tenant, refs)
    return [memory_document.document(entry) for entry in entries]


async def _turns(resources: Resources, tenant: str, refs: Sequence[str]) -> list[Document]:
    async with resources.postgres.tenant(tenant) as connection:
        rows = await turn_queries.documents(connection, tenant, refs)
    return [turn_document.of_row(row) for row in rows]


async def _desk(resources: Resources, tenant: str, refs: Sequence[str]) -> list[Document]:
    with redis_client.translated():
        entries = await working_queries.read_many(Desk(resources.redis, resources.settings, tenant), refs)
    return [working_document.document(tenant, entry) for entry in entries.values()]


async def _observations(resources: Resources, tenant: str, refs: Sequence[str]) -> list[Document]:
    async with resources.postgres.tenant(tenant) as connection:
        found = await observation_queries.read(connection, tenant, refs)
    return [observation_document.document(observed) for observed in found]


_LOADERS: dict[Kind, Load] = {
    Kind.MEMORY: _memories,
    Kind.TURN: _turns,
    Kind.DESK: _desk,
    Kind.OBSERVATION: _observations,
}
