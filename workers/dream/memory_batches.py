"""Which entries a consolidation shows to the model together, with their vectors where any are at hand.

A vector is never made for this: those that the index was given are in the cache, and where one is
missing words alone tell what is near.
"""

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from shared.dreams.runs import batches
from shared.foundation import errors
from shared.infra.embedder import Vector
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm.memory import Memory
from shared.search.index import embedding_cache
from workers.dream.pass_context import PassContext

_MOST_COMPARED = 2000


async def load_batches(
    night: PassContext, entries: Sequence[Memory], changed: AbstractSet[str]
) -> list[list[str]]:
    """Return ids to show together; of a scope over the limit only what changed and what is near it."""
    limit = night.resources.settings.dream_batch_size
    known = await _vectors(night, entries, changed) if len(entries) > limit else {}
    # Seconds of arithmetic for ten thousands of entries; what else this process does goes on meanwhile.
    return await asyncio.to_thread(batches.build_batches, entries, changed, known, limit)


async def _vectors(
    night: PassContext, entries: Sequence[Memory], changed: AbstractSet[str]
) -> dict[str, Vector]:
    embedder = night.resources.embedder
    if embedder is None:
        return {}
    try:
        dimension = await embedder.dimension()
    except errors.Unavailable:
        return {}
    compared = set((await asyncio.to_thread(batches.ids_to_compare, entries, changed))[:_MOST_COMPARED])
    passages = {one.id: memory_document.document(one).embedding_text for one in entries if one.id in compared}
    async with night.resources.postgres.for_tenant(night.run.tenant) as connection:
        known = await embedding_cache.find(
            connection, night.run.tenant, embedder.model, dimension, sorted(set(passages.values()))
        )
    return {id_: known[passage] for id_, passage in passages.items() if passage in known}
