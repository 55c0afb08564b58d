"""Know whose points or vectors the index lacks, so that a search of it does not pretend to be whole.

A save is acknowledged although Qdrant is away. When it is back, searches ask it again before a worker has
written the point of that save. So the writer notes with the job that it failed, before the save is
acknowledged, and a search of that tenant and kind says `index` in `degraded` until the job is done.

A record is embedded a moment after its save. Under load, or while the model is away, that takes longer, and
the record is found by its words alone. After `index_jobs.LATE_SECONDS`, searches say `embedding`.

Searches ask Postgres about once in half a second whether any tenant lacks something, and only then about
their own tenant. A failure in this process is known to it at once.
"""

import time
from collections.abc import Sequence

import structlog

from shared.foundation import errors
from shared.infra.postgres import Postgres
from shared.jobs import index_jobs
from shared.jobs.job import Job

_CACHE_SECONDS = 0.5
log = structlog.get_logger()


class MissingPoints:
    """What a process knows of the points that the index lacks."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._generations: frozenset[int] = frozenset()
        self._read_at = self._failed_at = float("-inf")

    async def note(self, jobs: Sequence[Job], reason: str) -> None:
        """Note that the points of these jobs could not be written; call it before their save is answered."""
        try:
            async with self._postgres.across_tenants() as tx:
                await index_jobs.note_failure(tx, jobs, reason)
        except errors.LociError as error:
            log.warning("missing_points_not_noted", jobs=len(jobs), reason=str(error))
        self.look_again()

    def look_again(self) -> None:
        """Forget what was read: the index has just failed, so that there may be more to know."""
        self._failed_at = time.monotonic()

    async def names(self, tenant: str, generation: int) -> list[str]:
        """Return what a generation lacks of a tenant: `index` (points), `embedding` (vectors), or nothing.

        Ask before the index is searched. Raises errors.Unavailable if Postgres is.
        """
        started_at = time.monotonic()
        if self._read_at <= self._failed_at or started_at - self._read_at >= _CACHE_SECONDS:
            async with self._postgres.across_tenants() as tx:
                self._generations = await index_jobs.list_incomplete_generations(tx)
            self._read_at = started_at
        if generation not in self._generations:
            return []
        async with self._postgres.for_tenant(tenant) as tx:
            missing = await index_jobs.find_missing(tx, generation)
        return ["index"] * missing.points + ["embedding"] * missing.vectors
