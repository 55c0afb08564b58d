"""Run each periodic task once per interval, even while several Celery beat processes run.

Two beats overlap during every rolling upgrade. The table `periodic_run` stores when each task last
ran; a trigger that arrives within the interval is ignored. The time of the database decides, and an interval
begins with the run, so the beats need not agree on when intervals begin.
"""

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert

from shared.infra.postgres import seconds
from shared.infra.transaction import FleetTransaction
from shared.jobs.table import periodic_run


async def claim_run(tx: FleetTransaction, task: str, interval: float) -> bool:
    """Tell whether a periodic task is to run now, and if so, record the run.

    It is to run if it did not run within the last `interval` seconds.
    """
    row = await tx.execute(
        insert(periodic_run)
        .values(task=task)
        .on_conflict_do_update(
            index_elements=[periodic_run.c.task],
            set_={"last_run_at": func.now()},
            where=periodic_run.c.last_run_at <= func.now() - seconds(interval),
        )
        .returning(periodic_run.c.task)
    )
    return row.one_or_none() is not None
