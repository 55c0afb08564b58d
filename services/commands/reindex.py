"""Rebuild the search index from the databases, while the current one stays in use."""

import asyncio
import sys
from collections.abc import Sequence

from services.commands.resources import with_resources
from shared.foundation import errors
from shared.foundation.stages import SEARCHABLE_KINDS, RecordKind
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.platform.resources import Resources
from shared.search.index import generations
from shared.search.index.generations import Generation

_POLL_SECONDS = 0.5


def rebuild(kind: str | None, *, wait: bool) -> None:
    """Start a new index generation of `kind`, or of every kind.

    Workers fill a generation, and it goes live when it lacks no record. Raise errors.Invalid for an
    unknown kind.
    """
    kinds = list(SEARCHABLE_KINDS) if kind is None else [_parse_kind(kind)]
    with_resources(lambda resources: _rebuild(resources, kinds, wait=wait))


def prepare() -> None:
    """Create the first generations and their collections, before the processes of a new stack start.

    Whoever does it needs the official client of Qdrant and its 36 MiB from then on; this process ends.
    """
    with_resources(rebuild_index.prepare_index)


def _parse_kind(name: str) -> RecordKind:
    if name not in SEARCHABLE_KINDS:
        raise errors.Invalid("kind", f"must be one of {', '.join(SEARCHABLE_KINDS)}")
    return RecordKind(name)


async def _rebuild(resources: Resources, kinds: Sequence[RecordKind], *, wait: bool) -> None:
    new_generations = await rebuild_index.start_reindex(resources, kinds)
    await rebuild_index.create_collections(resources)
    for generation in new_generations:
        sys.stderr.write(f"building {generation.collection} (model {generation.model or 'none'})\n")
    while wait and (missing_by_id := await _count_missing(resources, new_generations)):
        await rebuild_index.promote_ready(resources)
        sys.stderr.write(f"\r{sum(missing_by_id.values())} records to index   ")
        sys.stderr.flush()
        await asyncio.sleep(_POLL_SECONDS)
    if wait:
        sys.stderr.write("\ndone: the new index is in use\n")


async def _count_missing(resources: Resources, new_generations: Sequence[Generation]) -> dict[int, int]:
    """Return how many records each started generation lacks that is not live yet, by generation id."""
    async with resources.postgres.across_tenants() as tx:
        all_generations = await generations.list_generations(tx)
        new_ids = {generation.id for generation in new_generations}
        live = {generation.kind: generation for generation in all_generations if generation.state == "live"}
        return {
            generation.id: await generations.count_missing(tx, generation, live[generation.kind])
            for generation in all_generations
            if generation.state == "building" and generation.id in new_ids
        }
