"""Schedule a dream run for a scope. This module writes one job and knows nothing else about dreams."""

from datetime import UTC, datetime

import orjson
from cronsim import CronSim
from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from shared.foundation import stages
from shared.foundation.config import Settings
from shared.foundation.scope import Scope
from shared.foundation.stages import Pipeline, RecordKind
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries

# With a cron expression, the job of an active scope is due at the next cron time. Otherwise it is due after
# an initial delay, and not before the interval since the scope's last run has passed. While the job exists,
# more activity has no effect.
_SCHEDULE = text(
    """
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at)
    SELECT :tenant, 'dream_scope', :record_id, 'dream', :stage, 1,
           coalesce(CAST(:cron_time AS timestamptz),
                    greatest(now() + make_interval(secs => :initial_delay),
                             (SELECT max(created_at) FROM dream_run
                              WHERE tenant = :tenant AND agent_id = :agent_id AND actor <> ALL (:other_actors)
                                AND user_id IS NOT DISTINCT FROM CAST(:user_id AS text))
                             + make_interval(secs => :interval)))
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO NOTHING
    """
).bindparams(bindparam("other_actors", type_=ARRAY(Text)))


def has_no_job(pipeline: str) -> str:
    """Return the SQL condition that a scope has no job in a pipeline; if it has one, this locks it.

    A worker deletes the job that it has claimed, and then looks which turns there are. It waits for the
    transactions that have found the job, and so it sees their turns. They do not wait for each other.
    """
    return f"""NOT EXISTS (
        SELECT FROM job WHERE tenant = :tenant AND kind = 'dream_scope' AND record_id = :record_id
            AND pipeline = '{pipeline}' FOR KEY SHARE)"""


# A scope has one job for all of its sessions, so that turns of different sessions do not wait for each
# other. It is due when the first of them may be idle; the worker then finds out about the others.
_SCHEDULE_EVALUATION = text(
    f"""
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at)
    SELECT :tenant, 'dream_scope', :record_id, 'evaluation', :stage, 1,
           now() + make_interval(secs => :delay)
    WHERE {has_no_job("evaluation")}
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO NOTHING
    """
)
_HASTEN_EVALUATION = text(
    """
    UPDATE job SET run_at = least(run_at, now() + make_interval(secs => :delay))
    WHERE tenant = :tenant AND kind = 'dream_scope' AND record_id = :record_id AND pipeline = 'evaluation'
      AND lease_token IS NULL
    """
)
EVALUATION, MINING = "evaluation", "mining"
"""The actors of runs that only evaluate sessions, or only mine facts."""
_OTHER_ACTORS = [EVALUATION, MINING]
"""Their runs do not delay the next run of all passes."""


async def schedule_dream(tx: Transaction, settings: Settings, scope: Scope) -> None:
    """Schedule a dream run for a scope, unless one is scheduled already or dreams are disabled."""
    if not settings.dream_enabled:
        return
    values = {
        "tenant": scope.tenant,
        "record_id": scope_to_record_id(scope),
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
        "stage": stages.DREAM_START.name,
        "initial_delay": settings.dream_initial_delay,
        "interval": settings.dream_interval,
        "other_actors": _OTHER_ACTORS,
        "cron_time": next_cron_time(settings.dream_cron, datetime.now(UTC)),
    }
    await tx.fetch(_SCHEDULE, values)


async def schedule_evaluation(
    tx: Transaction, settings: Settings, scope: Scope, delay: float | None = None
) -> None:
    """Make the sessions of a scope due for evaluation in `delay` seconds.

    Without `delay`, a session has a turn now: it can't be idle before `session_idle_seconds` have passed, and
    a job that exists is due no later than that. Nothing is done if dreams or this pass are disabled.
    """
    if not settings.dream_enabled or stages.DreamPass.EVALUATE_SESSIONS in settings.dream_disabled_passes:
        return
    values: dict[str, str | float] = {"tenant": scope.tenant, "record_id": scope_to_record_id(scope)}
    if delay is not None:
        await tx.execute(_HASTEN_EVALUATION, values | {"delay": delay})
    values |= {"stage": stages.DREAM_START.name}
    seconds = settings.session_idle_seconds if delay is None else delay
    await tx.fetch(_SCHEDULE_EVALUATION, values | {"delay": seconds})


_LOCK_RUNS = text(
    """
    SELECT id FROM dream_run WHERE tenant = :tenant
    AND (user_id = CAST(:user_id AS text) OR agent_id = CAST(:agent_id AS text)) ORDER BY id FOR UPDATE
    """
)
_CANCEL_SCOPES = text(
    """
    DELETE FROM job WHERE tenant = :tenant AND kind = 'dream_scope'
    AND (CAST(record_id AS jsonb) ->> 1 = CAST(:user_id AS text)
         OR CAST(record_id AS jsonb) ->> 0 = CAST(:agent_id AS text))
    """
)


async def cancel_runs(
    tx: Transaction, *, user_id: str | None = None, agent_id: str | None = None
) -> list[str]:
    """Lock the dream runs of a user, of all agents, or of an agent, of all users, and delete their jobs.

    Return the ids of the runs. This waits for a pass that is recording its outcome, which holds its run; the
    job that it leaves for the next pass is deleted, too. A pass that is still thinking loses its claim. As a
    pass locks its run before sessions and memories, call this before locking any, and after
    `removals.lock_subject`, with which no run is started meanwhile.
    """
    values = {"tenant": tx.tenant, "user_id": user_id, "agent_id": agent_id}
    run_ids = list(await tx.scalars(_LOCK_RUNS, values))
    await job_queries.cancel(tx, RecordKind.DREAM_RUN, run_ids, Pipeline.DREAM)
    return run_ids


async def cancel_scopes(tx: Transaction, *, user_id: str | None = None, agent_id: str | None = None) -> None:
    """Delete the jobs that would start dreams of a user or an agent. Memories are locked before this."""
    values = {"tenant": tx.tenant, "user_id": user_id, "agent_id": agent_id}
    await tx.execute(_CANCEL_SCOPES, values)


def next_cron_time(cron: str | None, now: datetime) -> datetime | None:
    """Return the next time of a cron expression in UTC, or None without an expression."""
    return None if cron is None else next(CronSim(cron, now))


def scope_to_record_id(scope: Scope) -> str:
    """Return the record id that stands for a scope in its job."""
    return orjson.dumps([scope.agent_id, scope.user_id]).decode()


def scope_from_record_id(tenant: str, record_id: str) -> Scope:
    """Return the scope of a record id that `scope_to_record_id` returned."""
    agent_id, user_id = orjson.loads(record_id)
    return Scope(tenant, agent_id, user_id)
