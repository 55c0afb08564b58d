"""Rings of the clock that are to be followed once, however many clocks ring.

Beat may run twice, as during every roll-out. One row a kind of ring says when it was last followed;
another ring within the same window finds that and is no-op. The window begins with the ring that was
followed, by the database's clock: no two beats need agree on where windows begin.
"""

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.jobs.table import periodic_run


async def claim_run(connection: AsyncConnection, task: str, interval: float) -> bool:
    """Tell whether this ring is the first of its kind for `window` seconds; it then is the one followed."""
    earlier = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, interval)
    followed = insert(periodic_run).values(task=task)
    row = await connection.execute(
        followed.on_conflict_do_update(
            index_elements=[periodic_run.c.task],
            set_={"last_run_at": func.now()},
            where=periodic_run.c.last_run_at <= earlier,
        ).returning(periodic_run.c.task)
    )
    return row.one_or_none() is not None
