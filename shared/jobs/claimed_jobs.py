"""Build statements that change jobs only while the claim on them is still valid.

A claim is valid while the job has the lease token and the version that the claim had. Every statement
that records an outcome begins by locking the jobs whose claims are valid. They are locked in the order
in which jobs are enqueued; otherwise two transactions over the same jobs could block each other.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.types import BigInteger

from shared.jobs.job import Job


def on_claimed_jobs(statement: str, *, stage: str | None = None) -> TextClause:
    """Return a statement that can use the table expression `claimed`: (id, version, generation, age).

    `claimed` has the jobs whose claims are valid, locked; with `stage`, only those in that stage. `age` is
    the seconds since the record was saved, and NULL for a backfill. `statement` continues after the
    definition of `claimed`. Execute it with `claim_parameters`.
    """
    in_stage = "" if stage is None else f"WHERE w.stage = '{stage}'"
    return text(
        f"""
        WITH claimed AS (
            SELECT w.id, w.version, w.generation, CASE WHEN NOT w.backfill
                   THEN extract(epoch FROM clock_timestamp() - w.created_at)::float8 END AS age
            FROM job w
            JOIN unnest(:ids, :versions, :lease_tokens) AS c (id, version, lease_token)
              ON w.id = c.id AND w.version = c.version AND w.lease_token IS NOT DISTINCT FROM c.lease_token
            {in_stage}
            ORDER BY w.tenant, w.kind, w.record_id, w.generation FOR UPDATE OF w
        )
        {statement}
        """  # noqa: S608  (constants only)
    ).bindparams(
        bindparam("ids", type_=ARRAY(BigInteger)),
        bindparam("versions", type_=ARRAY(BigInteger)),
        bindparam("lease_tokens", type_=ARRAY(UUID(as_uuid=False))),
    )


def claim_parameters(jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the parameters that name the claims on these jobs."""
    return {
        "ids": [job.id for job in jobs],
        "versions": [job.version for job in jobs],
        "lease_tokens": [job.lease_token for job in jobs],
    }
