"""Schedule the mining of facts out of a scope's turns.

A scope has one job for all of its sessions. It is due when the scope can be at rest, and at once when it has
counted enough turns: `version` of the job is that count. Turns of different sessions do not wait for each
other, so the job does not count those that come while another transaction counts in it, or a worker has
claimed it. The worker looks at the turns themselves, after all transactions that have found its job.
"""

from sqlalchemy import text

from shared.foundation import stages
from shared.foundation.config import Settings
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.jobs.dream_schedule import has_no_job, scope_to_record_id

RETRY_SECONDS = 1800.0
"""After this time turns are tried again that a failure or a budget has left unmined."""

# Whether turns are mined: those of users unless the agent says no, those without a user if it says so.
_IS_MINED = """
    CASE WHEN CAST(:user_id AS text) IS NULL
         THEN EXISTS (SELECT FROM agent WHERE tenant = :tenant AND id = :agent_id
                      AND mine_facts AND mine_common)
         ELSE NOT EXISTS (SELECT FROM agent WHERE tenant = :tenant AND id = :agent_id AND NOT mine_facts)
    END
"""
_COUNT_TURNS = text(
    f"""
    WITH counted AS (
        UPDATE job SET version = version + CAST(:turns AS bigint),
                       run_at = CASE WHEN version + CAST(:turns AS bigint) >= CAST(:max_turns AS bigint)
                                     THEN least(run_at, now()) ELSE run_at END
        WHERE id = (SELECT id FROM job
                    WHERE tenant = :tenant AND kind = 'dream_scope' AND record_id = :record_id
                      AND pipeline = 'mining' AND lease_token IS NULL
                    FOR NO KEY UPDATE SKIP LOCKED)
        RETURNING id
    )
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at)
    SELECT :tenant, 'dream_scope', :record_id, 'mining', :stage, CAST(:turns AS bigint),
           CASE WHEN CAST(:turns AS bigint) >= CAST(:max_turns AS bigint) THEN now()
                ELSE now() + make_interval(secs => :rest) END
    WHERE NOT EXISTS (SELECT FROM counted) AND {has_no_job("mining")} AND {_IS_MINED}
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO UPDATE
        SET version = job.version + excluded.version WHERE job.lease_token IS NULL
    """  # noqa: S608  (constants only)
)
_SCHEDULE = text(
    """
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at)
    VALUES (:tenant, 'dream_scope', :record_id, 'mining', :stage, :turns,
            now() + make_interval(secs => :delay))
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO UPDATE
        SET run_at = least(job.run_at, excluded.run_at) WHERE job.lease_token IS NULL
    """
)
_UNSCHEDULE = text(
    """
    DELETE FROM job WHERE tenant = :tenant AND kind = 'dream_scope' AND record_id = :record_id
        AND pipeline = 'mining' AND lease_token IS NULL
    """
)


def is_enabled(settings: Settings) -> bool:
    """Tell whether turns are mined on schedule: runs are enabled, this pass is, and there is a model."""
    return (
        settings.dream_enabled
        and settings.llm_base_url is not None
        and stages.DreamPass.MINE_FACTS not in settings.dream_disabled_passes
    )


async def count_turns(tx: Transaction, settings: Settings, scope: Scope, turns: int) -> None:
    """Note new turns of a scope, and make it due: at once if it has enough of them, else when it can rest.

    Nothing is noted where nothing is mined: without a model, and if the agent's profile says so.
    """
    if not is_enabled(settings):
        return
    values = {
        **_job_of(scope),
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
        "stage": stages.MINE_START.name,
        "turns": turns,
        "max_turns": settings.mine_turns,
        "rest": settings.mine_rest_seconds,
    }
    await tx.fetch(_COUNT_TURNS, values)


async def schedule(tx: Transaction, scope: Scope, delay: float, turns: int = 0) -> None:
    """Make a scope, with so many unmined turns, due in `delay` seconds at the latest."""
    values = {"stage": stages.MINE_START.name, "delay": delay, "turns": turns}
    await tx.execute(_SCHEDULE, _job_of(scope) | values)


async def unschedule(tx: Transaction, scope: Scope) -> None:
    """Delete the job of a scope of which a run is about to read all turns, unless a worker has it."""
    await tx.execute(_UNSCHEDULE, _job_of(scope))


def _job_of(scope: Scope) -> dict[str, str]:
    return {"tenant": scope.tenant, "record_id": scope_to_record_id(scope)}
