"""Conditions of the statements on jobs, each with a job that only this condition leaves out."""

import asyncio
from dataclasses import replace
from itertools import product
from uuid import uuid4

from sqlalchemy import func, select, update

from shared.foundation.stages import EMBED, ENRICH, INDEX, SUMMARIZE_SKILL, RecordKind, Stage
from shared.infra.postgres import seconds
from shared.jobs import claim as job_claim
from shared.jobs import index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.jobs.table import job
from tests.integration.jobs.conftest import ATTEMPTS, LEASE, JobQueue


async def fail_worker(queue: JobQueue, *record_ids: str, attempts: int) -> None:
    """Let the worker of these jobs have died at this attempt."""
    died = {"lease_token": func.gen_random_uuid(), "attempts": attempts, "run_at": func.now() - seconds(1)}
    async with queue.resources.postgres.across_tenants() as tx:
        await tx.execute(update(job).where(job.c.record_id.in_(record_ids)).values(died))


def names(jobs: list[Job]) -> list[str]:
    return sorted(claimed.record_id for claimed in jobs)


async def claim_one(queue: JobQueue, record_id: str = "m", stage: Stage = ENRICH) -> Job | None:
    async with queue.resources.postgres.for_tenant("a") as tx:
        return await job_claim.claim_one(tx, RecordKind.MEMORY, record_id, stage, LEASE)


async def test_final_attempts_after_a_death_are_made_one_at_a_time(queue: JobQueue) -> None:
    await queue.add("a", "m1", "m2", "m3")
    await fail_worker(queue, "m1", "m2", attempts=ATTEMPTS - 1)
    first = await queue.claim()
    assert len([claimed for claimed in first if claimed.record_id != "m3"]) == 1
    assert "m3" in names(first)
    assert await queue.claim() == []
    await queue.complete(*first)
    assert len(await queue.claim()) == 1


async def test_two_workers_at_once_make_one_final_attempt(queue: JobQueue) -> None:
    await queue.add("a", "m1", "m2")
    await fail_worker(queue, "m1", "m2", attempts=ATTEMPTS - 1)
    async with queue.resources.postgres.across_tenants() as tx:
        assert len(await job_claim.claim_batch(tx, ENRICH, 10, LEASE, ATTEMPTS)) == 1
        assert await queue.claim() == []


async def test_a_last_attempt_after_rescheduling_is_made_with_the_others(queue: JobQueue) -> None:
    await queue.add("a", "m1", "m2")
    await queue.change(attempts=ATTEMPTS - 1, run_at=func.now() - seconds(60))
    await queue.add("a", "died")
    await fail_worker(queue, "died", attempts=ATTEMPTS - 1)
    assert names(await queue.claim()) == ["died", "m1", "m2"]


async def test_a_final_attempt_is_made_of_due_jobs_that_are_not_dead(queue: JobQueue) -> None:
    await queue.add("a", "m1")
    await fail_worker(queue, "m1", attempts=ATTEMPTS - 1)
    await queue.change(dead_at=func.now())
    assert await queue.claim() == []
    await queue.change(dead_at=None, run_at=func.now() + seconds(60))
    assert await queue.claim() == []
    await queue.change(run_at=func.now())
    assert names(await queue.claim()) == ["m1"]


async def test_of_a_tenant_only_due_living_jobs_are_claimed(queue: JobQueue) -> None:
    await queue.add("a", "dead", "later", "due")
    async with queue.resources.postgres.across_tenants() as tx:
        is_dead, is_later = job.c.record_id == "dead", job.c.record_id == "later"
        await tx.execute(update(job).where(is_dead).values(dead_at=func.now()))
        await tx.execute(update(job).where(is_later).values(run_at=func.now() + seconds(60)))
    assert names(await queue.claim()) == ["due"]


async def test_a_backfill_is_no_other_job(queue: JobQueue) -> None:
    await queue.add("a", "m1")
    await queue.change(backfill=True)
    await queue.add("a", "m2")
    assert names(await queue.claim(limit=1)) == ["m2"]


async def test_one_job_is_claimed_if_it_is_due_lives_and_is_in_the_stage(queue: JobQueue) -> None:
    await queue.add("a", "m")
    assert await claim_one(queue, stage=EMBED) is None
    await queue.change(dead_at=func.now())
    assert await claim_one(queue) is None
    await queue.change(dead_at=None)
    assert await claim_one(queue, "another") is None
    claimed = await claim_one(queue)
    assert claimed is not None
    assert claimed.attempts == 1
    assert LEASE - 30 < await queue.seconds_until_due() <= LEASE
    assert await claim_one(queue) is None, "it is claimed"


async def test_a_job_is_due_at_its_very_time(queue: JobQueue) -> None:
    async with queue.resources.postgres.for_tenant("a") as tx:
        await job_queries.enqueue(tx, "a", RecordKind.MEMORY, ENRICH, {"m": 1})
        assert await tx.scalar(select(job.c.run_at == func.now()))
        assert await job_claim.claim_one(tx, RecordKind.MEMORY, "m", ENRICH, LEASE) is not None


async def test_a_claim_on_one_job_ends_the_note_that_its_task_was_sent(queue: JobQueue) -> None:
    await queue.add("a", "m")
    await queue.change(sent_at=func.now())
    assert await claim_one(queue) is not None
    assert (await queue.only_row())["sent_at"] is None


async def test_a_claim_is_valid_with_its_token_and_its_version(queue: JobQueue) -> None:
    await queue.add("a", "m")
    [claimed] = await queue.claim()
    assert await queue.complete(replace(claimed, lease_token=str(uuid4()))) == set()
    assert await queue.complete(replace(claimed, lease_token=None)) == set()
    assert await queue.complete(replace(claimed, version=2)) == set()
    assert await queue.complete(claimed) == {claimed.id}


async def test_valid_claims_stay_valid_until_the_transaction_ends(queue: JobQueue) -> None:
    await queue.add("a", "m1", "m2")
    jobs = await queue.claim()
    async with queue.resources.postgres.across_tenants() as tx:
        lost = replace(jobs[0], lease_token=str(uuid4()))
        assert await job_queries.lock_valid(tx, []) == []
        assert await job_queries.lock_valid(tx, [lost, jobs[1]]) == [jobs[1]]
        other = asyncio.create_task(queue.complete(jobs[1]))
        await queue.wait_until_blocked(other)
        assert not other.done()
    assert await other == {jobs[1].id}


async def test_an_enqueued_job_is_due_after_its_delay_and_ends_the_claim(queue: JobQueue) -> None:
    await queue.add("a", "m")
    [claimed] = await queue.claim()
    await queue.add("a", "m")
    assert await queue.complete(claimed) == set(), "the same version, but a new job"
    async with queue.resources.postgres.for_tenant("a") as tx:
        await job_queries.enqueue(tx, "a", RecordKind.MEMORY, ENRICH, {"m": 1}, delay=60)
        await job_queries.enqueue(tx, "a", RecordKind.MEMORY, ENRICH, {})
    assert 30 < await queue.seconds_until_due() <= 60


async def test_a_lost_claim_reschedules_and_extends_nothing(queue: JobQueue) -> None:
    await queue.add("a", "m")
    [claimed] = await queue.claim()
    lost = replace(claimed, lease_token=str(uuid4()))
    async with queue.resources.postgres.across_tenants() as tx:
        await job_queries.release(tx, [lost])
        assert not await job_queries.extend_lease(tx, lost, 1000)
        assert (await queue_row(queue)) == claimed.lease_token
        assert await job_queries.extend_lease(tx, claimed, 1000)
    assert 900 < await queue.seconds_until_due() <= 1000
    async with queue.resources.postgres.across_tenants() as tx:
        await job_queries.release(tx, [claimed])
        assert await tx.scalar(select(job.c.run_at == func.now()))
    row = await queue.only_row()
    assert (row["lease_token"], row["attempts"], row["reason_code"]) == (None, 0, "released")


async def test_a_writer_gets_the_job_of_its_record_kind_and_pipeline(queue: JobQueue) -> None:
    kinds, record_ids, stages = (RecordKind.MEMORY, RecordKind.SKILL), ("m1", "m2"), (ENRICH, SUMMARIZE_SKILL)
    wanted = [*product(kinds, record_ids, stages)]
    async with queue.resources.postgres.for_tenant("a") as tx:
        for kind, record_id, stage in wanted:
            await job_queries.enqueue(tx, "a", kind, stage, {record_id: 1})
        for kind, record_id, stage in wanted:
            found = await job_queries.get_unclaimed(tx, kind, record_id, stage)
            assert (found.kind, found.record_id, found.pipeline) == (kind, record_id, stage.pipeline)


async def test_only_what_has_no_job_is_enqueued_as_missing(queue: JobQueue) -> None:
    async with queue.resources.postgres.for_tenant("a") as tx:
        await job_queries.enqueue(tx, "a", RecordKind.MEMORY, ENRICH, {"m1": 2})
        await job_queries.enqueue_missing(tx, RecordKind.MEMORY, ENRICH, {"m1": 1, "m2": 1})
        await job_queries.enqueue_missing(tx, RecordKind.MEMORY, ENRICH, {})
    assert [(row["record_id"], row["version"]) for row in await queue.job_rows()] == [("m1", 2), ("m2", 1)]


async def queue_row(queue: JobQueue) -> str:
    return str((await queue.only_row())["lease_token"])


async def test_a_newer_version_ends_a_claim_on_an_index_job(queue: JobQueue) -> None:
    await queue.create_generation()
    await queue.add_index("a", "m")
    [claimed] = await queue.claim(stage=INDEX)
    [enqueued] = await queue.add_index("a", "m")
    assert enqueued.lease_token is None
    async with queue.resources.postgres.across_tenants() as tx:
        confirmation = await index_jobs.confirm_indexed(tx, [claimed])
    assert confirmation.confirmed == set()


async def test_a_job_that_is_to_be_embedded_is_not_confirmed_as_indexed_again(queue: JobQueue) -> None:
    await queue.create_generation("model")
    jobs = await queue.add_index("a", "m")
    async with queue.resources.postgres.across_tenants() as tx:
        assert (await index_jobs.confirm_indexed(tx, jobs)).to_embed == 1
        repeated = await index_jobs.confirm_indexed(tx, jobs)
    assert (repeated.to_embed, repeated.confirmed) == (0, set())


async def test_a_backfill_of_one_generation_adds_no_job_of_another(queue: JobQueue) -> None:
    first, second = await queue.create_generation(), await queue.create_generation("model")
    jobs = await queue.add_index("a", "m", generation=second.id)
    assert [added.generation for added in jobs] == [second.id]
    async with queue.resources.postgres.across_tenants() as tx:
        assert list(await tx.scalars(select(job.c.generation))) == [second.id]
    assert first.id != second.id
