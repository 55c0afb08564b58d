"""Add vectors to points: from the cache where the same text was embedded before, else from the model."""

from collections.abc import Mapping, Sequence

import structlog
from qdrant_client.http.exceptions import UnexpectedResponse

from shared import errors, stages
from shared.clients.embedder import Embedder, Vector
from shared.clients.qdrant import MissingCollection
from shared.index import generations, points, vectors
from shared.index.generations import Generation
from shared.index.points import Document
from shared.resources import Resources
from shared.stages import EMBED, Kind
from shared.work import store as work
from shared.work.store import Claim
from workers import claims as loop
from workers.embedding import documents

Found = dict[tuple[str, Kind, str], Document]
log = structlog.get_logger()


async def embed_batch(resources: Resources, claims: Sequence[Claim]) -> None:
    """Embed what is due and add the vectors; what has no model to be embedded with is done."""
    async with resources.postgres.fleet() as connection:
        known = {generation.id: generation for generation in await generations.all_of(connection)}
    embedder = resources.embedder
    mine = [claim for claim in claims if _embeds(known.get(claim.generation), embedder)]
    others = [claim for claim in claims if claim not in mine]
    await _finish(resources, others)
    if embedder is None or not mine:
        return
    try:
        found = await documents.load(resources, mine)
        by_tenant = await _vectors(resources, embedder, list(found.values()))
    except errors.Unavailable as away:
        await loop.put_off(resources, EMBED, mine, away)
        return
    for number in {claim.generation for claim in mine}:
        held = [claim for claim in mine if claim.generation == number]
        await _add(resources, known[number], held, found, by_tenant)


def _embeds(generation: Generation | None, embedder: Embedder | None) -> bool:
    """A generation of another model than this process's is left to be retired."""
    return generation is not None and embedder is not None and generation.model == embedder.model


async def _finish(resources: Resources, claims: Sequence[Claim]) -> None:
    async with resources.postgres.fleet() as connection:
        await work.finish(connection, claims)


async def _vectors(
    resources: Resources, embedder: Embedder, found: Sequence[Document]
) -> dict[tuple[str, str], Vector]:
    """Return a vector for each (tenant, passage)."""
    passages: dict[str, list[str]] = {}
    for document in found:
        passages.setdefault(document.tenant, []).append(document.passage)
    known: dict[tuple[str, str], Vector] = {}
    for tenant, texts in passages.items():
        async with resources.postgres.tenant(tenant) as connection:
            cached = await vectors.known(connection, tenant, embedder.model, sorted(set(texts)))
        known |= {(tenant, passage): vector for passage, vector in cached.items()}
    lacking = list(dict.fromkeys((d.tenant, d.passage) for d in found if (d.tenant, d.passage) not in known))
    fresh = dict(zip(lacking, await embedder.embed([text for _, text in lacking]), strict=True))
    await _cache(resources, embedder, fresh)
    return known | fresh


async def _cache(resources: Resources, embedder: Embedder, fresh: Mapping[tuple[str, str], Vector]) -> None:
    for tenant in {tenant for tenant, _ in fresh}:
        mine = {passage: vector for (owner, passage), vector in fresh.items() if owner == tenant}
        async with resources.postgres.tenant(tenant) as connection:
            await vectors.keep(connection, tenant, embedder.model, mine)


async def _add(
    resources: Resources,
    generation: Generation,
    claims: Sequence[Claim],
    found: Found,
    by_tenant: Mapping[tuple[str, str], Vector],
) -> None:
    present = [found[key] for claim in claims if (key := (claim.tenant, claim.kind, claim.ref)) in found]
    pairs = [(document, by_tenant[(document.tenant, document.passage)]) for document in present]
    try:
        if pairs:
            await points.add_vectors(resources.qdrant, generation.collection, pairs)
    except MissingCollection as lost:
        await loop.put_off(resources, EMBED, claims, errors.Unavailable("qdrant", str(lost)))
    except errors.Unavailable as away:
        await loop.put_off(resources, EMBED, claims, away)
    except UnexpectedResponse:
        # One of the points is not there (the index lost it, or its record just changed), and the
        # rest were not written for it. Back to the index stage, which writes the points first.
        await _write_again(resources, claims)
    else:
        await _finish(resources, claims)


async def _write_again(resources: Resources, claims: Sequence[Claim]) -> None:
    log.warning("points_missing", rows=len(claims))
    async with resources.postgres.fleet() as connection:
        await work.back_to_index(connection, claims)
    resources.bell.ring(stages.INDEX, len(claims))
