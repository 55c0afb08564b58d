"""Write-through: index a save before it is acknowledged, so that searches find it at once.

The index jobs of the save are committed already and are due in a few seconds. If the keyword points can
be written now, the jobs are confirmed in small groups after the response, and they continue with `embed`
or are complete. If Qdrant is unavailable, or this process dies, the jobs become due and a worker writes
the same points. Until then searches name `index` in `degraded` (`missing_points`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog

from shared.foundation import errors, stages
from shared.foundation.stages import RecordKind
from shared.infra.broker import TaskPublisher
from shared.infra.postgres import Postgres
from shared.infra.qdrant import CollectionNotFound, Qdrant
from shared.infra.transaction import Transaction
from shared.jobs import counters as fleet_counters
from shared.jobs import index_jobs, written_records
from shared.jobs.job import Job
from shared.search.index import generations, points
from shared.search.index.generations import Generation
from shared.search.index.missing_points import MissingPoints
from shared.search.index.points import IndexDocument

WRITE_THROUGH_SECONDS = 5.0
"""Seconds that a writer has to index its own save before a worker does."""
_CONFIRM_DELAY_SECONDS = 0.25
LoadDocuments = Callable[[Transaction, Sequence[str]], Awaitable[Sequence[IndexDocument]]]
"""Read the index documents of a tenant's records, by record id, in the caller's transaction."""
log = structlog.get_logger()


class IndexWriter:
    """Indexes the saves of this process."""

    def __init__(
        self, postgres: Postgres, qdrant: Qdrant, publisher: TaskPublisher, missing_points: MissingPoints
    ) -> None:
        self._postgres = postgres
        self._qdrant = qdrant
        self._publisher = publisher
        self._missing_points = missing_points
        self._generations: dict[int, Generation] = {}
        self._unconfirmed: list[Job] = []
        self._confirmation: asyncio.Task[None] | None = None
        self._is_closing = asyncio.Event()
        self._writes: dict[asyncio.Task[None], str] = {}
        self._follow_ups: set[asyncio.Task[None]] = set()

    async def write_through(self, documents: Sequence[IndexDocument], jobs: Sequence[Job]) -> bool:
        """Write the keyword points of a save; tell whether all were written.

        `jobs` are the index jobs of the save, one per record and generation. A record without a document is
        deleted: its points are deleted whose versions are lower than that of its job.
        """
        by_id = {document.record_id: document for document in documents}
        by_generation: dict[int, list[Job]] = {}
        for job in jobs:
            by_generation.setdefault(job.generation, []).append(job)
        results = [await self._write(number, group, by_id) for number, group in by_generation.items()]
        return all(results)

    async def note_missing(self, jobs: Sequence[Job]) -> None:
        """Note that search lacks the points of jobs that were enqueued again after a failed write."""
        await self._missing_points.note(jobs, "qdrant: the writer could not write the point")

    def write_soon(self, tenant: str, documents: Sequence[IndexDocument], jobs: Sequence[Job]) -> None:
        """Write the keyword points of a tenant's save after the response.

        If this process dies before, a worker does. A search that must find them waits for `finish_writes`.
        """
        task = asyncio.create_task(self._write_logged(documents, jobs))
        self._writes[task] = tenant
        task.add_done_callback(self._writes.pop)

    def keep(self, follow_up: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start what follows a commit as a task that `close` waits for, and return it."""
        task = asyncio.create_task(follow_up)
        self._follow_ups.add(task)
        task.add_done_callback(self._follow_ups.discard)
        return task

    async def finish_writes(self, tenant: str) -> None:
        """Wait until what this process was to write for a tenant is written, or has failed."""
        if tasks := [task for task, of_tenant in self._writes.items() if of_tenant == tenant]:
            await asyncio.wait(tasks)

    async def _write_logged(self, documents: Sequence[IndexDocument], jobs: Sequence[Job]) -> None:
        try:
            await self.write_through(documents, jobs)
        except errors.LociError as error:
            log.warning("write_through_failed", jobs=len(jobs), reason=str(error))

    async def write_through_unindexed(
        self, tenant: str, kind: RecordKind, record_ids: Sequence[str], load: LoadDocuments
    ) -> None:
        """Write the keyword points that the first try of a repeated request left unwritten after its commit.

        Call it, outside a transaction, before a stored response is returned: a caller who repeats a
        request because its connection broke then finds what it stored, as after the first try. Jobs that
        a worker is processing are left to it.
        """
        written_records.note(tenant, kind, record_ids)
        async with self._postgres.for_tenant(tenant) as tx:
            jobs = await index_jobs.find_unindexed(tx, kind, record_ids)
            documents = await load(tx, [job.record_id for job in jobs])
        await self.write_through(documents, jobs)

    async def close(self) -> None:
        """Finish the writes that were not waited for, and confirm the remaining jobs without a delay."""
        while unfinished := {*self._writes, *self._follow_ups}:
            await asyncio.wait(unfinished)
        if self._confirmation is not None:
            self._is_closing.set()
            await self._confirmation
            self._is_closing.clear()

    async def _write(
        self,
        generation_id: int,
        jobs: list[Job],
        by_id: Mapping[str, IndexDocument],
    ) -> bool:
        try:
            generation = await self._find_generation(generation_id)
            await self._write_points(generation.collection, jobs, by_id)
        except (errors.Unavailable, CollectionNotFound) as error:
            log.warning("write_through_failed", jobs=len(jobs), reason=str(error))
            # A point that was to be deleted is no hit, so nothing is missing without its deletion.
            missing = [job for job in jobs if job.record_id in by_id]
            await self._missing_points.note(missing, str(error))
            self._publisher.wake(stages.INDEX, len(jobs))
            return False
        self._confirm_soon(jobs)
        return True

    async def _write_points(
        self,
        collection: str,
        jobs: list[Job],
        by_id: Mapping[str, IndexDocument],
    ) -> None:
        documents = [by_id[job.record_id] for job in jobs if job.record_id in by_id]
        deleted_jobs = [job for job in jobs if job.record_id not in by_id]
        await points.write_records(self._qdrant, collection, documents, deleted_jobs)

    async def _find_generation(self, generation_id: int) -> Generation:
        if generation_id not in self._generations:
            async with self._postgres.across_tenants() as tx:
                self._generations = {g.id: g for g in await generations.list_generations(tx)}
        try:
            return self._generations[generation_id]
        except KeyError:
            raise CollectionNotFound(f"generation {generation_id} no longer exists") from None

    def _confirm_soon(self, jobs: list[Job]) -> None:
        self._unconfirmed += jobs
        if self._confirmation is None or self._confirmation.done():
            self._confirmation = asyncio.create_task(self._confirm())

    async def _confirm(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_closing.wait(), _CONFIRM_DELAY_SECONDS)
        while self._unconfirmed:
            jobs, self._unconfirmed = self._unconfirmed, []
            try:
                async with self._postgres.across_tenants() as tx:
                    to_embed, ages, confirmed = await index_jobs.confirm_indexed(tx, jobs)
                    superseded_jobs = [job for job in jobs if (job.id, job.version) not in confirmed]
                    await index_jobs.enqueue_cleanup(tx, superseded_jobs)
            except errors.LociError as error:
                log.warning("index_not_confirmed", jobs=len(jobs), reason=str(error))
                return
            if to_embed:
                self._publisher.wake(stages.EMBED, to_embed)
            await fleet_counters.observe_time_to_searchable(self._postgres, "keyword", ages)
