"""Ask a model about so many rows at once: the slot of each that was answered goes to the next.

`claims.drain` is for stages whose batch is one call. Where each row is a call of its own, a batch
would wait for its slowest while the other slots stood idle, and the model with them. For the same
reason a row frees its slot when it has its answer, and records it beside the next call. The slots
belong to the process, however many rings reach it: so a fleet asks the model for `workers x slots`
answers at once, which is what its operator scales by.

One task of a stage claims in a process. A ring that comes meanwhile has it look once more, and ends
at once, so that a burst of rings does not fill the threads that other queues need.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from shared.foundation.stages import Stage
from shared.jobs import claim as job_claim
from shared.jobs.job import Job
from shared.platform.resources import Resources
from workers.runtime import drain
from workers.runtime.drain import ClaimCounts

ReleaseSlot = Callable[[], None]
ProcessJob = Callable[[Resources, Job, ReleaseSlot], Awaitable[None]]


class ConcurrentDrain:
    """The slots of one stage in this process. `do` works on a row and says when its slot is free."""

    def __init__(self, stage: Stage, do: ProcessJob) -> None:
        self._stage = stage
        self._do = do
        self._taken: set[Job] = set()
        self._freed = asyncio.Event()
        self._claiming = False
        self._rung = False

    async def drain(self, resources: Resources, slots: int) -> ClaimCounts:
        """Work off what is due, with `slots` calls at once; return what this call claimed, all of it ended.

        It claims until nothing is due, or for half a lease: whoever is rung next goes on, while the
        last of these still end. A row that fails unforeseen raises at the end, and is due again
        when its lease ends.
        """
        self._rung, worked = True, ClaimCounts()
        if self._claiming:
            return worked
        mine: list[asyncio.Task[None]] = []
        try:
            await self._keep_full(resources, slots, worked, mine)
        except asyncio.CancelledError:
            for task in mine:
                task.cancel()
            raise
        finally:
            # After a failure too: what the model was asked has its price already.
            ended = await asyncio.gather(*mine, return_exceptions=True)
        for failure in filter(None, ended):
            raise failure
        return worked

    async def _keep_full(
        self, resources: Resources, slots: int, worked: ClaimCounts, mine: list[asyncio.Task[None]]
    ) -> None:
        enough = time.monotonic() + resources.settings.job_lease / 2
        self._claiming, self._freed = True, asyncio.Event()
        try:
            await self._until_one_is_free(slots)
            while time.monotonic() < enough and not drain.stopping.is_set():
                held = await self._claim(resources, slots - len(self._taken))
                if not held and not self._rung:
                    return
                worked.add(held)
                mine += [self._begin(resources, claim) for claim in held]
                await self._until_one_is_free(slots)
        finally:
            self._claiming = False
        resources.publisher.wake(self._stage)

    async def _claim(self, resources: Resources, free: int) -> list[Job]:
        self._rung = False
        settings = resources.settings
        async with resources.postgres.across_tenants() as connection:
            return await job_claim.claim_batch(
                connection, self._stage, free, settings.job_lease, settings.job_max_attempts
            )

    def _begin(self, resources: Resources, claim: Job) -> asyncio.Task[None]:
        async def work(_: Resources, __: Sequence[Job]) -> None:
            await self._do(resources, claim, partial(self._free, claim))

        self._taken.add(claim)
        task = asyncio.create_task(drain.process_within_lease(resources, self._stage, work, [claim]))
        task.add_done_callback(lambda _: self._free(claim))
        return task

    def _free(self, claim: Job) -> None:
        self._taken.discard(claim)
        self._freed.set()

    async def _until_one_is_free(self, slots: int) -> None:
        while len(self._taken) >= slots:
            self._freed.clear()
            await self._freed.wait()
