"""Learn the cosine floors of index generations that have grown."""

from shared.infra.qdrant import CollectionNotFound
from shared.platform.resources import Resources
from shared.search.index import floors, generations


async def learn_floors(resources: Resources) -> int:
    """Learn the floor of every written generation that has grown enough; return how many were learnt."""
    async with resources.postgres.across_tenants() as tx:
        active = [g for g in await generations.list_generations(tx) if g.state != "retiring"]
    learnt_count = 0
    for generation in active:
        try:
            learnt_count += await floors.learn_if_due(resources.postgres, resources.qdrant, generation)
        except CollectionNotFound:
            continue  # deleted meanwhile; the next step that writes creates it again
    return learnt_count
