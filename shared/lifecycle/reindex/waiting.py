"""Count what waits for the first generation of the configured model: no job stands for it yet.

Such a generation begins when the endpoint has answered. Until then, records are found by keyword alone.
"""

from shared.foundation.stages import SEARCHABLE_KINDS
from shared.lifecycle.kinds import KINDS
from shared.platform.resources import Resources
from shared.search.index import generations


async def count_waiting(resources: Resources, tenant: str) -> int:
    """Return how many records of a tenant are of kinds that the configured model has no generation for."""
    embedder = resources.embedder
    if embedder is None:
        return 0
    async with resources.postgres.across_tenants() as tx:
        all_generations = await generations.list_generations(tx)
    names = {embedder.known_name} if embedder.known_name else {g.model for g in all_generations} - {None}
    embedded = {generation.kind for generation in all_generations if generation.model in names}
    waiting = [kind for kind in SEARCHABLE_KINDS if kind not in embedded]
    return sum([await KINDS[kind].count(resources, tenant) for kind in waiting])
