"""Read records of any kind as the index sees them, in their tenant's own transaction."""

from collections.abc import Awaitable, Callable, Sequence

from shared.clients import redis
from shared.conversation import document as turn_document
from shared.conversation import store as conversation
from shared.index.points import Document
from shared.longterm import document as longterm_document
from shared.longterm import store as longterm
from shared.observations import document as observation_document
from shared.observations import store as observations
from shared.resources import Resources
from shared.stages import Kind
from shared.work.store import Claim
from shared.working import document as desk_document
from shared.working import store as desk
from shared.working.store import Desk

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
        entries = await longterm.read(connection, tenant, refs)
    return [longterm_document.document(entry) for entry in entries]


async def _turns(resources: Resources, tenant: str, refs: Sequence[str]) -> list[Document]:
    async with resources.postgres.tenant(tenant) as connection:
        rows = await conversation.documents(connection, tenant, refs)
    return [turn_document.of_row(row) for row in rows]


async def _desk(resources: Resources, tenant: str, refs: Sequence[str]) -> list[Document]:
    with redis.translated():
        entries = await desk.read_many(Desk(resources.redis, resources.settings, tenant), refs)
    return [desk_document.document(tenant, entry) for entry in entries.values()]


async def _observations(resources: Resources, tenant: str, refs: Sequence[str]) -> list[Document]:
    async with resources.postgres.tenant(tenant) as connection:
        found = await observations.read(connection, tenant, refs)
    return [observation_document.document(observed) for observed in found]


_LOADERS: dict[Kind, Load] = {
    Kind.MEMORY: _memories,
    Kind.TURN: _turns,
    Kind.DESK: _desk,
    Kind.OBSERVATION: _observations,
}
