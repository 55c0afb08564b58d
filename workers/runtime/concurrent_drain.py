"""Drain a stage in which every job is a call of its own, with several calls at once.

`drain.drain` is for stages whose batch is one call. With one call for each job, a batch would wait for
its slowest call while the other slots, and the model, were idle. Here the slot of a finished call goes
to the next job at once. A job releases its slot when it has its reply, and stores the result while the
next call runs. The slots belong to the process, however many wake-ups reach it, so a fleet makes
`workers x slots` calls at once; that is the number by which an operator scales.

One task of a stage claims in a process. A wake-up that comes meanwhile makes that task look for jobs
once more, and its own task ends at once, so that many wake-ups do not occupy the threads that other
queues need.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from shared.foundation.stages import Stage
from shared.jobs.job import Job
from shared.platform.resources import Resources
from workers.runtime import drain
from workers.runtime.drain import ClaimCounts

ReleaseSlot = Callable[[], None]
ProcessJob = Callable[[Resources, Job, ReleaseSlot], Awaitable[None]]


class ConcurrentDrain:
    """The slots of one stage in this process.

    `process_job` works on a job, and calls the given function when its slot can go to the next one.
    """

    def __init__(self, stage: Stage, process_job: ProcessJob) -> None:
        self._stage = stage
        self._process_job = process_job
        self._jobs_with_slot: set[Job] = set()
        self._slot_released = asyncio.Event()
        self._is_claiming = False
        self._has_wake_up = False

    async def drain(self, resources: Resources, slots: int) -> ClaimCounts:
        """Process the due jobs with `slots` calls at once, and return the counts of what was claimed.

        Claim until nothing is due, or for half a lease; then send a wake-up, so that another task goes
        on while the last jobs of this one end. All claimed jobs have ended when this returns. An
        unexpected failure of a job is raised at the end; the job is due again when its lease ends.
        """
        counts = ClaimCounts()
        self._has_wake_up = True
        if self._is_claiming:
            return counts
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._fill_slots(resources, slots, counts, tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            raise
        finally:
            # After a failure, too: the calls that are running have been paid for.
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for failure in filter(None, results):
            raise failure
        return counts

    async def _fill_slots(
        self, resources: Resources, slots: int, counts: ClaimCounts, tasks: list[asyncio.Task[None]]
    ) -> None:
        """Claim and start jobs until nothing is due, or for half a lease."""
        deadline = time.monotonic() + resources.settings.job_lease / 2
        self._is_claiming, self._slot_released = True, asyncio.Event()
        try:
            await self._wait_for_slot(slots)
            while time.monotonic() < deadline and not drain.stopping.is_set():
                jobs = await self._claim(resources, slots - len(self._jobs_with_slot))
                if not jobs and not self._has_wake_up:
                    return
                counts.add(jobs)
                tasks += [self._start(resources, job) for job in jobs]
                await self._wait_for_slot(slots)
        finally:
            self._is_claiming = False
        resources.publisher.wake(self._stage)

    async def _claim(self, resources: Resources, limit: int) -> list[Job]:
        self._has_wake_up = False
        return await drain.claim(resources, self._stage, limit)

    def _start(self, resources: Resources, job: Job) -> asyncio.Task[None]:
        async def process(_: Resources, __: Sequence[Job]) -> None:
            await self._process_job(resources, job, partial(self._release_slot, job))

        self._jobs_with_slot.add(job)
        task = asyncio.create_task(drain.process_within_lease(resources, self._stage, process, [job]))
        task.add_done_callback(lambda _: self._release_slot(job))
        return task

    def _release_slot(self, job: Job) -> None:
        self._jobs_with_slot.discard(job)
        self._slot_released.set()

    async def _wait_for_slot(self, slots: int) -> None:
        while len(self._jobs_with_slot) >= slots:
            self._slot_released.clear()
            await self._slot_released.wait()
