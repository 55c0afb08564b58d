"""A transaction over records that does after its commit what follows from it, so that nobody can forget it.

First the points of what was written are written through, then comes what else was noted, in the order of
the notes, and at last the workers are woken. All of it happens after the connection was given back, and
nothing after an exception. A cancelled request stops none of it. What fails is only logged, because the
commit stands: jobs of the same transaction are due for it. Whoever repeats a transaction, as after a
deadlock, begins another.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.stages import RecordKind, Stage
from shared.infra.broker import TaskPublisher
from shared.infra.postgres import Postgres
from shared.infra.transaction import Transaction
from shared.jobs import index_jobs
from shared.jobs.job import Job
from shared.search.index.points import IndexDocument
from shared.search.index.writer import WRITE_THROUGH_SECONDS, IndexWriter, LoadDocuments

FollowUp = Callable[[], Awaitable[object]]
log = structlog.get_logger()


class RecordTransaction(Transaction):
    """A transaction over the records of one tenant, and what follows its commit."""

    def __init__(
        self, connection: AsyncConnection, tenant: str, writer: IndexWriter, publisher: TaskPublisher
    ) -> None:
        super().__init__(connection, tenant)
        self._writer = writer
        self._publisher = publisher
        self._documents: list[IndexDocument] = []
        self._jobs: list[Job] = []
        self._is_waited_for = False
        self._follow_ups: list[FollowUp] = []
        self._woken: Counter[Stage] = Counter()

    async def index(self, documents: Sequence[IndexDocument], *, wait: bool = True) -> None:
        """Make records due for the index, and write their points through after the commit.

        Without `wait`, nobody waits for the points but a search of the tenant in this process.
        """
        self._documents += documents
        for kind, versions in _versions_by_kind(documents).items():
            await self._enqueue(kind, versions, wait=wait)

    async def remove_points(self, kind: RecordKind, versions: Mapping[str, int]) -> None:
        """Delete the points that records have below these versions, after the commit."""
        if versions:
            await self._enqueue(kind, versions, wait=True)

    async def _enqueue(self, kind: RecordKind, versions: Mapping[str, int], *, wait: bool) -> None:
        self._is_waited_for = self._is_waited_for or wait
        self._jobs += await index_jobs.enqueue_index_jobs(
            self, self.tenant, kind, versions, delay=WRITE_THROUGH_SECONDS
        )

    def index_repeated(self, kind: RecordKind, record_ids: Sequence[str], load: LoadDocuments) -> None:
        """Write through after the commit what the first try of a repeated request left unindexed."""
        self.after_commit(partial(self._writer.write_through_unindexed, self.tenant, kind, record_ids, load))

    def after_commit(self, follow_up: FollowUp) -> None:
        """Call this after the commit, once the points are written. Its errors.LociError is only logged."""
        self._follow_ups.append(follow_up)

    def wake(self, stage: Stage, jobs: int = 1) -> None:
        """Tell the workers after the commit that so many more jobs of a stage are due."""
        self._woken[stage] += jobs

    async def follow(self) -> None:
        """Do what follows the commit, also if the caller is cancelled meanwhile."""
        if self._jobs and not self._is_waited_for:
            self._writer.write_soon(self.tenant, self._documents, self._jobs)
        elif self._jobs:
            self._follow_ups.insert(0, partial(self._writer.write_through, self._documents, self._jobs))
        try:
            if self._follow_ups:
                await asyncio.shield(self._writer.keep(_call_all(self._follow_ups)))
        finally:
            for stage, jobs in self._woken.items():
                self._publisher.wake(stage, jobs)


def _versions_by_kind(documents: Iterable[IndexDocument]) -> Mapping[RecordKind, dict[str, int]]:
    versions: dict[RecordKind, dict[str, int]] = {}
    for document in documents:
        versions.setdefault(document.kind, {})[document.record_id] = document.version
    return versions


async def _call_all(follow_ups: Iterable[FollowUp]) -> None:
    for follow_up in follow_ups:
        try:
            await follow_up()
        except errors.LociError as error:
            log.warning("follow_up_failed", reason=str(error))


@asynccontextmanager
async def begin(
    postgres: Postgres, writer: IndexWriter, publisher: TaskPublisher, tenant: str
) -> AsyncIterator[RecordTransaction]:
    """Open a transaction over the records of a tenant, and do after its commit what follows from it.

    Raises as `Postgres.for_tenant` does.
    """
    async with postgres.for_tenant(tenant) as opened:
        tx = RecordTransaction(opened.connection, tenant, writer, publisher)
        yield tx
    await tx.follow()
