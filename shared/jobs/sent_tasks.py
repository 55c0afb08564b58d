"""Choose the jobs whose tasks are sent next, for the stages in which each job has a task of its own.

A task waits in the broker's queue behind those that were sent before it. So only a few are sent ahead: as
many as passes run, and some more for idle workers. Tenants take turns for these places, and a tenant with
one due job does not wait for the hundred jobs of another. A job is chosen once. When its task was not
started for `RESEND_SECONDS`, it may be lost, and the job is chosen again, after those that were due before
that: one whose tasks are lost again and again keeps nobody out. Should both tasks arrive, one finds the job
claimed.
"""

from sqlalchemy import func, select, text

from shared.foundation.stages import PASS_STAGES, Stage
from shared.infra.transaction import FleetTransaction
from shared.jobs.job import Job

RESEND_SECONDS = 60.0
_SENT_AHEAD = 2
# Two workers that look at the same time would both fill the same places.
_LOCK = 0x10C1_0003
_CHOOSE = """
    WITH RECURSIVE places AS (
        SELECT greatest(0, :ahead + count(*) FILTER (WHERE lease_token IS NOT NULL AND run_at > now())
                           - count(*) FILTER (WHERE sent_at > now() - make_interval(secs => :resend))
               ) AS free
        FROM job WHERE stage = '{stage}' AND (lease_token IS NOT NULL OR sent_at IS NOT NULL)
    ), present AS (
        (SELECT tenant FROM job
         WHERE stage = '{stage}' AND NOT backfill AND dead_at IS NULL ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT w.tenant FROM job w
                WHERE w.stage = '{stage}' AND NOT w.backfill AND w.dead_at IS NULL
                  AND w.tenant > present.tenant ORDER BY w.tenant LIMIT 1)
        FROM present WHERE present.tenant IS NOT NULL
    ), due AS (
        SELECT present.tenant FROM present
        WHERE EXISTS (SELECT FROM job w
                      WHERE w.stage = '{stage}' AND NOT w.backfill AND w.dead_at IS NULL
                        AND w.tenant = present.tenant AND w.run_at <= now() AND w.attempts < :attempts
                        AND (w.sent_at IS NULL OR w.sent_at <= now() - make_interval(secs => :resend)))
        ORDER BY random() LIMIT (SELECT free FROM places)
    ), picked AS (
        SELECT share.id FROM due CROSS JOIN LATERAL (
            SELECT w.id FROM job w
            WHERE w.stage = '{stage}' AND NOT w.backfill AND w.dead_at IS NULL
              AND w.tenant = due.tenant AND w.run_at <= now() AND w.attempts < :attempts
              AND (w.sent_at IS NULL OR w.sent_at <= now() - make_interval(secs => :resend))
            ORDER BY greatest(w.run_at, w.sent_at)
            LIMIT greatest(1, (SELECT free FROM places) / (SELECT count(*) FROM due))
            FOR UPDATE SKIP LOCKED
        ) AS share
    )
    UPDATE job SET sent_at = now() FROM picked WHERE job.id = picked.id
    RETURNING job.id, tenant, kind, record_id, version, generation, lease_token, attempts, pipeline,
              traceparent, reason_code
    """
# The stage is a constant of each statement, because the index on what was sent names the stages.
_CHOOSE_IN = {stage: text(_CHOOSE.format(stage=stage.name)) for stage in PASS_STAGES}


async def choose_jobs(tx: FleetTransaction, stage: Stage, attempts: int) -> list[Job]:
    """Return the due jobs of a stage whose tasks are to be sent now, noted as sent.

    A job that has been attempted `attempts` times is left to the sweep.
    """
    await tx.execute(select(func.pg_advisory_xact_lock(_LOCK)))
    values = {"ahead": _SENT_AHEAD, "resend": RESEND_SECONDS, "attempts": attempts}
    return [Job.from_row(row) for row in (await tx.execute(_CHOOSE_IN[stage], values)).mappings()]
