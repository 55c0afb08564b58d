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
from shared.memory.longterm.memory import Entry
from shared.search.index import embedding_cache
from workers.dream.pass_context import Night

_MOST_COMPARED = 2000


async def groups(night: Night, entries: Sequence[Entry], changed: AbstractSet[str]) -> list[list[str]]:
    """Return ids to show together; of a scope over the limit only what changed and what is near it."""
    limit = night.resources.settings.dream_entries
    known = await _vectors(night, entries, changed) if len(entries) > limit else {}
    # Seconds of arithmetic for ten thousands of entries; what else this process does goes on meanwhile.
    return await asyncio.to_thread(batches.clusters, entries, changed, known, limit)


async def _vectors(night: Night, entries: Sequence[Entry], changed: AbstractSet[str]) -> dict[str, Vector]:
    embedder = night.resources.embedder
    if embedder is None:
        return {}
    try:
        dimension = await embedder.dimension()
    except errors.Unavailable:
        return {}
    compared = set((await asyncio.to_thread(batches.compared, entries, changed))[:_MOST_COMPARED])
    passages = {one.id: memory_document.document(one).passage for one in entries if one.id in compared}
    async with night.resources.postgres.tenant(night.run.tenant) as connection:
        known = await embedding_cache.known(
            connection, night.run.tenant, embedder.model, dimension, sorted(set(passages.values()))
        )
    return {id_: known[passage] for id_, passage in passages.items() if passage in known}
