"""Rebuild the index from the stores, beside the one in use."""

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

_POLL = 0.5


def rebuild(kind: str | None, *, wait: bool) -> None:
    """Begin new generations; workers fill them, and each is swapped in when nothing of it is behind."""
    kinds = list(SEARCHABLE_KINDS) if kind is None else [_kind(kind)]
    with_resources(lambda resources: _rebuild(resources, kinds, wait=wait))


def _kind(name: str) -> RecordKind:
    if name not in SEARCHABLE_KINDS:
        raise errors.Invalid("kind", f"must be one of {', '.join(SEARCHABLE_KINDS)}")
    return RecordKind(name)


async def _rebuild(resources: Resources, kinds: Sequence[RecordKind], *, wait: bool) -> None:
    begun = await rebuild_index.start_reindex(resources, kinds)
    await rebuild_index.create_collections(resources)
    for generation in begun:
        sys.stderr.write(f"building {generation.collection} (model {generation.model or 'none'})\n")
    while wait and (left := await _not_live(resources, begun)):
        await rebuild_index.promote_ready(resources)
        behind = sum(left.values())
        sys.stderr.write(f"\r{behind} records behind   ")
        sys.stderr.flush()
        await asyncio.sleep(_POLL)
    if wait:
        sys.stderr.write("\ndone: the new index is in use\n")


async def _not_live(resources: Resources, begun: Sequence[Generation]) -> dict[int, int]:
    """Return, for each generation that is still being built, how many records it lacks."""
    async with resources.postgres.across_tenants() as connection:
        known = await generations.list_generations(connection)
        building = [g for g in known if g.state == "building" and g.id in {b.id for b in begun}]
        live = {g.kind: g for g in known if g.state == "live"}
        return {g.id: await generations.count_missing(connection, g, live[g.kind]) for g in building}
