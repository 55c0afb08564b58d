"""Ring for what is due: rings that were lost, and rows that were put off until now."""

from contextlib import suppress

from shared import errors, stages
from shared.reindex import rebuild
from shared.resources import Resources
from shared.work import backlog


async def hand_on(resources: Resources) -> dict[str, int]:
    """Ring for each stage with due rows, and move index generations on; return the rows by stage."""
    async with resources.postgres.fleet() as connection:
        due = await backlog.due(connection)
    for name, rows in due.items():
        resources.bell.ring(stages.STAGES[name], rows)
    # With Qdrant away, what was promoted is promoted, and the rest is tried again in a moment.
    with suppress(errors.Unavailable):
        await rebuild.advance(resources)
    return due
