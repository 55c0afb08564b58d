"""Write-through: make what was just saved findable before the save is acknowledged.

The rows of `work` for it are already committed, due in a few seconds. If the keyword points
are written now, the rows are confirmed (in small groups, off the request path) and move on to
`embed` or away. If Qdrant is down, or this process dies in between, they come due and a worker
writes the same points: nothing but time is lost.
"""

import asyncio
from collections.abc import Sequence

import structlog

from shared.foundation import errors, stages
from shared.infra.broker import TaskPublisher
from shared.infra.postgres import Postgres
from shared.infra.qdrant import CollectionNotFound, Qdrant
from shared.jobs import counters as fleet_counters
from shared.jobs import index_jobs
from shared.jobs.job import Job
from shared.search.index import generations, points
from shared.search.index.generations import Generation
from shared.search.index.points import IndexDocument

WRITE_THROUGH_SECONDS = 5.0
"""Seconds that a writer has to index its own save before a worker does."""
_GROUP = 0.05
log = structlog.get_logger()


class IndexWriter:
    """Indexes this process's own saves."""

    def __init__(self, postgres: Postgres, qdrant: Qdrant, bell: TaskPublisher) -> None:
        self._postgres = postgres
        self._qdrant = qdrant
        self._bell = bell
        self._generations: dict[int, Generation] = {}
        self._written: list[Job] = []
        self._confirming: asyncio.Task[None] | None = None

    async def write_through(self, documents: Sequence[IndexDocument], claims: Sequence[Job]) -> bool:
        """Write the keyword points of what was saved; tell whether they are all there.

        `claims` are the index rows that the save wrote, one per document and generation.
        """
        by_ref = {document.record_id: document for document in documents}
        by_generation: dict[int, list[Job]] = {}
        for claim in claims:
            by_generation.setdefault(claim.generation, []).append(claim)
        written = [await self._write(number, held, by_ref) for number, held in by_generation.items()]
        return all(written)

    async def close(self) -> None:
        """Confirm what is written and not yet confirmed."""
        if self._confirming is not None:
            await self._confirming

    async def _write(self, number: int, claims: list[Job], by_ref: dict[str, IndexDocument]) -> bool:
        try:
            generation = await self._generation(number)
            present = [by_ref[claim.record_id] for claim in claims if claim.record_id in by_ref]
            if present:
                await points.upsert_points(self._qdrant, generation.collection, present)
            for document in present:
                if document.version > 1:
                    await points.remove(
                        self._qdrant,
                        generation.collection,
                        document.tenant,
                        document.record_id,
                        except_version=document.point_id,
                    )
            for claim in claims:
                if claim.record_id not in by_ref:
                    await points.remove(self._qdrant, generation.collection, claim.tenant, claim.record_id)
        except (errors.Unavailable, CollectionNotFound) as error:
            log.warning("write_through_failed", rows=len(claims), reason=str(error))
            self._bell.wake(stages.INDEX, len(claims))
            return False
        self._confirm_soon(claims)
        return True

    async def _generation(self, number: int) -> Generation:
        if number not in self._generations:
            async with self._postgres.across_tenants() as connection:
                self._generations = {g.id: g for g in await generations.list_generations(connection)}
        try:
            return self._generations[number]
        except KeyError:
            raise CollectionNotFound(f"generation {number} is gone") from None

    def _confirm_soon(self, claims: list[Job]) -> None:
        self._written += claims
        if self._confirming is None or self._confirming.done():
            self._confirming = asyncio.create_task(self._confirm())

    async def _confirm(self) -> None:
        await asyncio.sleep(_GROUP)
        while self._written:
            claims, self._written = self._written, []
            try:
                async with self._postgres.across_tenants() as connection:
                    waiting, ages = await index_jobs.confirm_indexed(connection, claims)
            except errors.LociError as error:
                log.warning("index_not_confirmed", rows=len(claims), reason=str(error))
                return
            if waiting:
                self._bell.wake(stages.EMBED, waiting)
            await fleet_counters.observe_time_to_searchable(self._postgres, "keyword", ages)
