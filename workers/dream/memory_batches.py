"""Build the batches of memories that a consolidation shows to the model, with cached embeddings.

No embedding is computed for this. Those that the index was given are in the cache; for a memory without
one, only its words decide which memories are near it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from shared.dreams.runs import batches
from shared.foundation import errors, prompt_size
from shared.infra.embedder import Vector
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm.memory import Memory
from shared.search.index import embedding_cache
from workers.passes.pass_context import PassContext

_MAX_COMPARED = 2000


async def load_batches(
    context: PassContext,
    memories: Sequence[Memory],
    changed_ids: AbstractSet[str],
    tokens: Mapping[str, int],
    max_tokens: int,
) -> list[list[str]]:
    """Return batches of memory ids; of a scope over the limits only what changed and what is near it.

    `tokens` are those that each memory adds to a prompt; a batch has at most `max_tokens`.
    """
    limit = min(context.resources.settings.dream_batch_size, _fitting_count(memories, tokens, max_tokens))
    batches_by_count = await _batches_of(context, memories, changed_ids, limit)
    return [
        part
        for batch in batches_by_count
        for part in prompt_size.split(batch, tokens.__getitem__, max_tokens)
    ]


def _fitting_count(memories: Sequence[Memory], tokens: Mapping[str, int], max_tokens: int) -> int:
    """Return how many of these memories fit into a prompt on average: all of them, if all fit."""
    total_tokens = sum(tokens[memory.id] for memory in memories)
    if total_tokens <= max_tokens:
        return max(2, len(memories))
    return max(2, len(memories) * max_tokens // total_tokens)


async def _batches_of(
    context: PassContext, memories: Sequence[Memory], changed_ids: AbstractSet[str], limit: int
) -> list[list[str]]:
    vectors = await _cached_vectors(context, memories, changed_ids) if len(memories) > limit else {}
    # In a thread: over ten thousand memories this takes seconds, and must not block other jobs.
    return await asyncio.to_thread(batches.build_batches, memories, changed_ids, vectors, limit)


async def _cached_vectors(
    context: PassContext, memories: Sequence[Memory], changed_ids: AbstractSet[str]
) -> dict[str, Vector]:
    """Return the cached embeddings of the memories to compare, by memory id."""
    embedder, tenant = context.resources.embedder, context.run.tenant
    if embedder is None:
        return {}
    try:
        name, dimension = await embedder.name(), await embedder.dimension()
    except errors.Unavailable:
        return {}
    to_compare = set((await asyncio.to_thread(batches.ids_to_compare, memories, changed_ids))[:_MAX_COMPARED])
    embedding_texts = {
        memory.id: memory_document.document(memory).embedding_text
        for memory in memories
        if memory.id in to_compare
    }
    async with context.resources.postgres.for_tenant(tenant) as tx:
        cached_vectors = await embedding_cache.find(
            tx, name, dimension, sorted(set(embedding_texts.values()))
        )
    return {
        memory_id: cached_vectors[text]
        for memory_id, text in embedding_texts.items()
        if text in cached_vectors
    }
