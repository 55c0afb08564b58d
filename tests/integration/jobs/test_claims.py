"""Claims on jobs: equal shares for tenants, leases by the time of the database, and fencing tokens."""

import asyncio
import time
from collections import Counter

from shared.foundation.stages import EMBED, ENRICH, INDEX, Pipeline, ReasonCode
from shared.jobs import backlog, dead_jobs, index_jobs
from shared.jobs import claim as job_claim
from shared.jobs import counters as fleet_counters
from shared.jobs import queries as job_queries
from tests.integration.jobs.conftest import ATTEMPTS, JobQueue


async def test_a_claim_counts_the_attempt_before_the_work_and_leases_the_job(queue: JobQueue) -> None:
    await queue.add("a", "m", version=7)
    (job,) = await queue.claim()
    row = await queue.only_row()
    assert (job.tenant, job.record_id, job.version, job.attempts) == ("a", "m", 7, 1)
    assert job.pipeline is Pipeline.ENRICHMENT
    assert (str(row["lease_token"]), row["attempts"]) == (job.lease_token, 1)
    assert 55 < await queue.seconds_until_due() <= 60


async def test_a_claimed_job_cannot_be_claimed_again_before_its_lease_ends(queue: JobQueue) -> None:
    await queue.add("a", "m")
    (first_job,) = await queue.claim()
    assert await queue.claim() == []
    await queue.end_leases()
    (second_job,) = await queue.claim()
    assert second_job.lease_token not in {None, first_job.lease_token}
    assert second_job.attempts == 2


async def test_tenants_share_a_batch_equally_however_long_one_backlog_is(queue: JobQueue) -> None:
    """The ten jobs of B are in the first batch, together with jobs of A's hundred thousand."""
    await queue.add_backlog("a", 100_000)
    await queue.add("b", *(f"m{n}" for n in range(10)))
    started = time.perf_counter()
    jobs = await queue.claim(100)
    print(f"a claim with 100 000 jobs in the queue took {(time.perf_counter() - started) * 1000:.1f} ms")  # noqa: T201
    assert Counter(job.tenant for job in jobs) == {"a": 50, "b": 10}
    assert Counter(job.tenant for job in await queue.claim(100)) == {"a": 100}


async def test_no_tenant_gets_two_jobs_of_a_batch_if_there_are_more_tenants_than_places(
    queue: JobQueue,
) -> None:
    for tenant in "abcdef":
        await queue.add(tenant, "m1", "m2")
    jobs = await queue.claim(4)
    assert len({job.tenant for job in jobs}) == len(jobs) == 4
    served = Counter([job.tenant for job in jobs])
    while jobs := await queue.claim(4):
        served.update(job.tenant for job in jobs)
    assert served == dict.fromkeys("abcdef", 2)


async def test_a_tenant_whose_jobs_are_all_leased_takes_no_share(queue: JobQueue) -> None:
    await queue.add("a", *(f"m{n}" for n in range(10)))
    assert len(await queue.claim(10)) == 10
    await queue.add("b", *(f"m{n}" for n in range(10)))
    assert Counter(job.tenant for job in await queue.claim(8)) == {"b": 8}


async def test_concurrent_claims_never_share_a_job(queue: JobQueue) -> None:
    for tenant in "abc":
        await queue.add(tenant, *(f"m{n}" for n in range(100)))

    async def claim_all() -> list[int]:
        claimed_ids: list[int] = []
        while jobs := await queue.claim(7):
            claimed_ids += [job.id for job in jobs]
        return claimed_ids

    claimed_ids = [job_id for ids in await asyncio.gather(*(claim_all() for _ in range(6))) for job_id in ids]
    assert len(claimed_ids) == len(set(claimed_ids)) == 300


async def test_a_job_that_another_claim_has_locked_is_skipped_without_waiting(queue: JobQueue) -> None:
    await queue.add("a", "m1", "m2")
    async with queue.resources.postgres.across_tenants() as tx:
        (locked_job,) = await job_claim.claim_batch(tx, ENRICH, 1, 60, ATTEMPTS)
        async with asyncio.timeout(5):
            (other_job,) = await queue.claim()
    assert locked_job.id != other_job.id


async def test_jobs_that_are_due_longest_are_claimed_first(queue: JobQueue) -> None:
    for record_id in ("m1", "m2", "m3"):
        await queue.add("a", record_id)
    assert [(await queue.claim(1))[0].record_id for _ in range(3)] == ["m1", "m2", "m3"]


async def test_a_job_without_attempts_left_is_not_claimed_but_listed_as_exhausted(queue: JobQueue) -> None:
    """A job that kills its worker each time must not kill the next one too."""
    await queue.add("a", "m")
    for attempt in range(1, 4):
        (job,) = await queue.claim(attempts=3)
        assert job.attempts == attempt
        async with queue.resources.postgres.across_tenants() as tx:
            assert await backlog.list_exhausted(tx, 3, 10) == []
        await queue.end_leases()
    assert await queue.claim(attempts=3) == []
    async with queue.resources.postgres.across_tenants() as tx:
        assert await backlog.list_exhausted(tx, 3, 10) == [job]


async def test_an_outdated_lease_token_can_record_nothing(queue: JobQueue) -> None:
    """A worker that was paused for longer than its lease has such a token."""
    await queue.add("a", "m")
    (outdated_job,) = await queue.claim()
    await queue.end_leases()
    (current_job,) = await queue.claim()
    before = await queue.only_row()
    assert await queue.complete(outdated_job) == set()
    async with queue.resources.postgres.across_tenants() as tx:
        await job_queries.reschedule(
            tx, outdated_job, "late", 99, reason_code=ReasonCode.UNAVAILABLE, refund=True
        )
        await dead_jobs.mark_dead(tx, outdated_job, "late")
        await index_jobs.reset_to_index(tx, [outdated_job])
        assert await index_jobs.confirm_indexed(tx, [outdated_job]) == (0, [], set())
    assert await queue.only_row() == before
    assert await queue.complete(current_job) == {current_job.id}
    assert await queue.job_rows() == []


async def test_a_newer_version_invalidates_the_claim(queue: JobQueue) -> None:
    await queue.add("a", "m", version=1)
    (outdated_job,) = await queue.claim()
    await queue.add("a", "m", version=2)
    row = await queue.only_row()
    assert (row["version"], row["lease_token"], row["attempts"], row["last_error"]) == (2, None, 0, None)
    assert await queue.complete(outdated_job) == set()
    (current_job,) = await queue.claim()
    assert (current_job.version, current_job.attempts) == (2, 1)
    assert await queue.complete(current_job) == {current_job.id}


async def test_completing_a_job_twice_counts_once(queue: JobQueue) -> None:
    await queue.add("a", "m1", "m2")
    jobs = await queue.claim()
    outcomes = await asyncio.gather(*(queue.complete(*jobs) for _ in range(4)))
    assert sorted(map(len, outcomes)) == [0, 0, 0, 2]


async def test_rescheduling_ends_the_claim_and_keeps_or_returns_the_attempt(queue: JobQueue) -> None:
    await queue.add("a", "m")
    for refund, attempts in ((False, 1), (True, 1), (False, 2)):
        (job,) = await queue.claim()
        async with queue.resources.postgres.across_tenants() as tx:
            await job_queries.reschedule(
                tx, job, "x" * 1000, 30, reason_code=ReasonCode.UNAVAILABLE, refund=refund
            )
        row = await queue.only_row()
        assert (row["attempts"], row["lease_token"], row["last_error"]) == (attempts, None, "x" * 500)
        assert 25 < await queue.seconds_until_due() <= 30
        assert await queue.claim() == []
        await queue.end_leases()


async def test_a_released_job_is_due_at_once_and_uses_no_attempt(queue: JobQueue) -> None:
    await queue.add("a", "m1", "m2")
    jobs = await queue.claim()
    async with queue.resources.postgres.across_tenants() as tx:
        await job_queries.release(tx, jobs)
    assert [job.attempts for job in await queue.claim()] == [1, 1]


async def test_a_dead_job_has_its_reason_is_never_claimed_and_is_reset_by_a_new_version(
    queue: JobQueue,
) -> None:
    await queue.add("a", "poison", "fine")
    poison_job = next(job for job in await queue.claim() if job.record_id == "poison")
    async with queue.resources.postgres.across_tenants() as tx:
        await dead_jobs.mark_dead(tx, poison_job, "it bites")
    await queue.end_leases()
    assert [job.record_id for job in await queue.claim()] == ["fine"]
    dead_row = next(row for row in await queue.job_rows() if row["record_id"] == "poison")
    assert dead_row["dead_at"] is not None
    assert dead_row["last_error"] == "it bites"
    async with queue.resources.postgres.across_tenants() as tx:
        assert await backlog.list_exhausted(tx, 1, 10) == []
    await queue.add("a", "poison", version=2)
    assert [job.record_id for job in await queue.claim()] == ["poison"]


async def test_backfills_are_claimed_after_other_jobs(queue: JobQueue) -> None:
    live = await queue.create_generation()
    await queue.add_index("a", *(f"old{n}" for n in range(50)), generation=live.id)
    await queue.add_index("b", "new1", "new2")
    assert {job.record_id for job in await queue.claim(2, INDEX)} == {"new1", "new2"}
    await queue.end_leases()
    jobs = await queue.claim(10, INDEX)
    assert {job.record_id for job in jobs[:2]} == {"new1", "new2"}
    assert {job.tenant for job in jobs[2:]} == {"a"}
    assert len(jobs) == 10


async def test_a_new_version_is_due_in_every_generation_and_a_backfill_resets_no_job(queue: JobQueue) -> None:
    live, building = await queue.create_generation(), await queue.create_generation("model")
    assert (live.state, building.state) == ("live", "building")
    new_jobs = await queue.add_index("a", "m", version=3)
    assert [job.generation for job in new_jobs] == [live.id, building.id]
    assert await queue.add_index("a", "m", version=1, generation=building.id) == []
    assert [row["version"] for row in await queue.job_rows()] == [3, 3]
    (backfill_job,) = await queue.add_index("a", "other", generation=building.id)
    assert backfill_job.generation == building.id
    await queue.add_index("a", "other", version=2)
    assert {row["backfill"] for row in await queue.job_rows()} == {False}


async def test_an_indexed_record_is_to_be_embedded_only_if_the_generation_has_a_model(
    queue: JobQueue,
) -> None:
    """Without a configured model, nothing is pending."""
    sparse_generation = await queue.create_generation()
    dense_generation = await queue.create_generation("model")
    jobs = await queue.add_index("a", "m")
    async with queue.resources.postgres.across_tenants() as tx:
        assert (await index_jobs.confirm_indexed(tx, jobs)).to_embed == 1
    row = await queue.only_row()
    assert (row["generation"], row["stage"]) == (dense_generation.id, "embed")
    assert sparse_generation.id != dense_generation.id
    (job,) = await queue.claim(stage=EMBED)
    async with queue.resources.postgres.across_tenants() as tx:
        await index_jobs.reset_to_index(tx, [job])
    assert [job.record_id for job in await queue.claim(stage=INDEX)] == ["m"]


async def test_a_writer_cannot_confirm_a_job_that_a_worker_has_claimed(queue: JobQueue) -> None:
    """The writer has no lease token. As soon as a worker has one, the writer may record nothing."""
    await queue.create_generation()
    writer_jobs = await queue.add_index("a", "m")
    (claimed_job,) = await queue.claim(stage=INDEX)
    async with queue.resources.postgres.across_tenants() as tx:
        await index_jobs.confirm_indexed(tx, writer_jobs)
    assert str((await queue.only_row())["lease_token"]) == claimed_job.lease_token
    async with queue.resources.postgres.across_tenants() as tx:
        await index_jobs.confirm_indexed(tx, [claimed_job])
    assert await queue.job_rows() == []


async def test_pending_jobs_are_counted_by_stage_for_a_tenant_and_for_the_fleet(queue: JobQueue) -> None:
    await queue.create_generation("model")
    await queue.add("a", "m1", "m2", "m3")
    await queue.add("b", "m1")
    await queue.add_index("a", "m1", "m2")
    (first_job, *_) = await queue.claim(1)
    async with queue.resources.postgres.across_tenants() as tx:
        fleet_rows = {row["stage"]: row for row in await backlog.backlog_by_stage(tx)}
        assert await backlog.count_due(tx) == {"enrich": 3, "index": 2}
    async with queue.resources.postgres.for_tenant("a") as tx:
        tenant_rows = {row["stage"]: row for row in await backlog.backlog_by_stage(tx, "a")}
    assert {stage: row["pending"] for stage, row in fleet_rows.items()} == {"enrich": 4, "index": 2}
    assert {stage: row["pending"] for stage, row in tenant_rows.items()} == {"enrich": 3, "index": 2}
    assert fleet_rows["enrich"]["running"] == 1
    assert tenant_rows["enrich"]["running"] == (first_job.tenant == "a")
    assert 0 <= tenant_rows["index"]["oldest_age_seconds"] < 60


async def test_dead_jobs_are_counted_separately(queue: JobQueue) -> None:
    await queue.add("a", "m1", "m2")
    (job, _) = await queue.claim()
    async with queue.resources.postgres.across_tenants() as tx:
        await dead_jobs.mark_dead(tx, job, "why")
        (row,) = await backlog.backlog_by_stage(tx)
    assert (row["pending"], row["dead"]) == (1, 1)


async def test_cancelling_one_pipeline_leaves_the_other_and_invalidates_the_claim(queue: JobQueue) -> None:
    await queue.create_generation()
    await queue.add("a", "m")
    await queue.add_index("a", "m")
    (job,) = await queue.claim()
    async with queue.resources.postgres.for_tenant("a") as tx:
        await job_queries.cancel(tx, job.kind, ["m"], job.pipeline)
    assert [row["pipeline"] for row in await queue.job_rows()] == ["index"]
    assert await queue.complete(job) == set()


async def test_counters_add_up_across_transactions(queue: JobQueue) -> None:
    for _ in range(3):
        async with queue.resources.postgres.across_tenants() as tx:
            await fleet_counters.increment(tx, "events", {"a": 2, "b": 0.5, "none": 0})
    async with queue.resources.postgres.across_tenants() as tx:
        counters = {(row["name"], row["labels"]): row["value"] for row in await fleet_counters.read_all(tx)}
    assert counters == {("events", "a"): 6, ("events", "b"): 1.5}
