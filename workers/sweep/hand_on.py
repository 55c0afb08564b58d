"""Ring for what is due: the other half of the doorbell, for rings that were lost and rows that were put off."""

from shared import errors, stages
from shared.index import rebuild
from shared.resources import Resources
from shared.work import store as work


async def hand_on(resources: Resources) -> dict[str, int]:
    """Ring for each stage with due rows, and move index generations on; return the rows by stage."""
    async with resources.postgres.fleet() as connection:
        due = await work.due(connection)
    for name, rows in due.items():
        resources.bell.ring(stages.STAGES[name], rows)
    try:
        await rebuild.advance(resources)
    except errors.Unavailable:
        pass  # Qdrant is away; what was promoted is promoted, and the rest is tried in a moment
    return due
