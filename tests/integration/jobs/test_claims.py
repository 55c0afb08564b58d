"""The queue of record: fair claims, leases by the database's clock, tokens that fence (I3, F11, F12, F16)."""

import asyncio
import time
from collections import Counter

from shared.foundation.stages import EMBED, ENRICH, INDEX, Pipeline, ReasonCode
from shared.jobs import backlog, dead_jobs, index_jobs
from shared.jobs import claim as job_claim
from shared.jobs import counters as fleet_counters
from shared.jobs import queries as job_queries
from tests.integration.queue.conftest import ATTEMPTS, Queue


async def test_a_claim_counts_the_attempt_before_the_work_and_leases_the_job(queue: Queue) -> None:
    await queue.add("a", "m", version=7)
    (claim,) = await queue.claim()
    row = await queue.row()
    assert (claim.tenant, claim.record_id, claim.version, claim.attempts) == ("a", "m", 7, 1)
    assert claim.pipeline is Pipeline.ENRICHMENT
    assert (str(row["lease_token"]), row["attempts"]) == (claim.lease_token, 1)
    assert 55 < await queue.due_in() <= 60


async def test_a_claimed_job_cannot_be_claimed_again_before_its_lease_ends(queue: Queue) -> None:
    await queue.add("a", "m")
    (first,) = await queue.claim()
    assert await queue.claim() == []
    await queue.let_leases_end()
    (second,) = await queue.claim()
    assert second.lease_token not in {None, first.lease_token}
    assert second.attempts == 2


async def test_tenants_share_a_batch_equally_however_long_one_backlog_is(queue: Queue) -> None:
    """F16: B's ten are in the very first claim, beside A's hundred thousand."""
    await queue.pile("a", 100_000)
    await queue.add("b", *(f"m{n}" for n in range(10)))
    started = time.perf_counter()
    claims = await queue.claim(100)
    print(f"a claim beside 100 000 rows took {(time.perf_counter() - started) * 1000:.1f} ms")  # noqa: T201
    assert Counter(claim.tenant for claim in claims) == {"a": 50, "b": 10}
    assert Counter(claim.tenant for claim in await queue.claim(100)) == {"a": 100}


async def test_no_tenant_gets_two_jobs_of_a_batch_if_there_are_more_tenants_than_places(queue: Queue) -> None:
    for tenant in "abcdef":
        await queue.add(tenant, "m1", "m2")
    claims = await queue.claim(4)
    assert len({claim.tenant for claim in claims}) == len(claims) == 4
    served = Counter([claim.tenant for claim in claims])
    while claims := await queue.claim(4):
        served.update(claim.tenant for claim in claims)
    assert served == dict.fromkeys("abcdef", 2)


async def test_a_tenant_whose_jobs_are_all_leased_takes_no_share(queue: Queue) -> None:
    await queue.add("a", *(f"m{n}" for n in range(10)))
    assert len(await queue.claim(10)) == 10
    await queue.add("b", *(f"m{n}" for n in range(10)))
    assert Counter(claim.tenant for claim in await queue.claim(8)) == {"b": 8}


async def test_concurrent_claims_never_share_a_job(queue: Queue) -> None:
    for tenant in "abc":
        await queue.add(tenant, *(f"m{n}" for n in range(100)))

    async def claim_all() -> list[int]:
        mine: list[int] = []
        while claims := await queue.claim(7):
            mine += [claim.id for claim in claims]
        return mine

    taken = [one for some in await asyncio.gather(*(claim_all() for _ in range(6))) for one in some]
    assert len(taken) == len(set(taken)) == 300


async def test_a_job_that_another_claim_has_locked_is_skipped_without_waiting(queue: Queue) -> None:
    await queue.add("a", "m1", "m2")
    async with queue.resources.postgres.across_tenants() as connection:
        (held,) = await job_claim.claim_batch(connection, ENRICH, 1, 60, ATTEMPTS)
        async with asyncio.timeout(5):
            (other,) = await queue.claim()
    assert held.id != other.id


async def test_jobs_that_are_due_longest_are_claimed_first(queue: Queue) -> None:
    for ref in ("m1", "m2", "m3"):
        await queue.add("a", ref)
    assert [(await queue.claim(1))[0].record_id for _ in range(3)] == ["m1", "m2", "m3"]


async def test_a_job_without_attempts_left_is_not_claimed_but_listed_as_exhausted(queue: Queue) -> None:
    """F14: what kills its worker each time must not take the next one down too."""
    await queue.add("a", "m")
    for attempt in range(1, 4):
        (claim,) = await queue.claim(attempts=3)
        assert claim.attempts == attempt
        async with queue.resources.postgres.across_tenants() as connection:
            assert await backlog.list_exhausted(connection, 3, 10) == []
        await queue.let_leases_end()
    assert await queue.claim(attempts=3) == []
    async with queue.resources.postgres.across_tenants() as connection:
        assert await backlog.list_exhausted(connection, 3, 10) == [claim]


async def test_an_outdated_lease_token_can_record_nothing(queue: Queue) -> None:
    """F12: a worker that was paused past its lease is a zombie."""
    await queue.add("a", "m")
    (zombie,) = await queue.claim()
    await queue.let_leases_end()
    (holder,) = await queue.claim()
    before = await queue.row()
    assert await queue.finish(zombie) == set()
    async with queue.resources.postgres.across_tenants() as connection:
        await job_queries.reschedule(
            connection, zombie, "late", 99, reason_code=ReasonCode.UNAVAILABLE, refund=True
        )
        await dead_jobs.mark_dead(connection, zombie, "late")
        await index_jobs.reset_to_index(connection, [zombie])
        assert await index_jobs.confirm_indexed(connection, [zombie]) == (0, [])
    assert await queue.row() == before
    assert await queue.finish(holder) == {holder.id}
    assert await queue.rows() == []


async def test_a_newer_version_invalidates_the_claim(queue: Queue) -> None:
    await queue.add("a", "m", version=1)
    (old,) = await queue.claim()
    await queue.add("a", "m", version=2)
    row = await queue.row()
    assert (row["version"], row["lease_token"], row["attempts"], row["last_error"]) == (2, None, 0, None)
    assert await queue.finish(old) == set()
    (new,) = await queue.claim()
    assert (new.version, new.attempts) == (2, 1)
    assert await queue.finish(new) == {new.id}


async def test_completing_a_job_twice_counts_once(queue: Queue) -> None:
    """F11."""
    await queue.add("a", "m1", "m2")
    claims = await queue.claim()
    outcomes = await asyncio.gather(*(queue.finish(*claims) for _ in range(4)))
    assert sorted(map(len, outcomes)) == [0, 0, 0, 2]


async def test_rescheduling_ends_the_claim_and_keeps_or_returns_the_attempt(queue: Queue) -> None:
    await queue.add("a", "m")
    for refund, attempts in ((False, 1), (True, 1), (False, 2)):
        (claim,) = await queue.claim()
        async with queue.resources.postgres.across_tenants() as connection:
            await job_queries.reschedule(
                connection, claim, "x" * 1000, 30, reason_code=ReasonCode.UNAVAILABLE, refund=refund
            )
        row = await queue.row()
        assert (row["attempts"], row["lease_token"], row["last_error"]) == (attempts, None, "x" * 500)
        assert 25 < await queue.due_in() <= 30
        assert await queue.claim() == []
        await queue.let_leases_end()


async def test_a_released_job_is_due_at_once_and_uses_no_attempt(queue: Queue) -> None:
    await queue.add("a", "m1", "m2")
    claims = await queue.claim()
    async with queue.resources.postgres.across_tenants() as connection:
        await job_queries.release(connection, claims)
    assert [claim.attempts for claim in await queue.claim()] == [1, 1]


async def test_a_dead_job_has_its_reason_is_never_claimed_and_is_reset_by_a_new_version(queue: Queue) -> None:
    """I10."""
    await queue.add("a", "poison", "fine")
    poison = next(claim for claim in await queue.claim() if claim.record_id == "poison")
    async with queue.resources.postgres.across_tenants() as connection:
        await dead_jobs.mark_dead(connection, poison, "it bites")
    await queue.let_leases_end()
    assert [claim.record_id for claim in await queue.claim()] == ["fine"]
    dead = next(row for row in await queue.rows() if row["record_id"] == "poison")
    assert dead["dead_at"] is not None
    assert dead["last_error"] == "it bites"
    async with queue.resources.postgres.across_tenants() as connection:
        assert await backlog.list_exhausted(connection, 1, 10) == []
    await queue.add("a", "poison", version=2)
    assert [claim.record_id for claim in await queue.claim()] == ["poison"]


async def test_backfills_are_claimed_after_other_jobs(queue: Queue) -> None:
    live = await queue.begin()
    await queue.add_index("a", *(f"old{n}" for n in range(50)), generation=live.id)
    await queue.add_index("b", "new1", "new2")
    assert {claim.record_id for claim in await queue.claim(2, INDEX)} == {"new1", "new2"}
    await queue.let_leases_end()
    claims = await queue.claim(10, INDEX)
    assert {claim.record_id for claim in claims[:2]} == {"new1", "new2"}
    assert {claim.tenant for claim in claims[2:]} == {"a"}
    assert len(claims) == 10


async def test_a_new_version_is_due_in_every_generation_and_a_backfill_resets_no_job(queue: Queue) -> None:
    """IX2."""
    live, building = await queue.begin(), await queue.begin("model")
    assert (live.state, building.state) == ("live", "building")
    fresh = await queue.add_index("a", "m", version=3)
    assert [claim.generation for claim in fresh] == [live.id, building.id]
    assert await queue.add_index("a", "m", version=1, generation=building.id) == []
    assert [row["version"] for row in await queue.rows()] == [3, 3]
    (filled,) = await queue.add_index("a", "other", generation=building.id)
    assert filled.generation == building.id
    await queue.add_index("a", "other", version=2)
    assert {row["backfill"] for row in await queue.rows()} == {False}


async def test_an_indexed_record_is_to_be_embedded_only_if_the_generation_has_a_model(queue: Queue) -> None:
    """IX4: nothing configured, nothing pending."""
    plain, modelled = await queue.begin(), await queue.begin("model")
    claims = await queue.add_index("a", "m")
    async with queue.resources.postgres.across_tenants() as connection:
        assert (await index_jobs.confirm_indexed(connection, claims)).to_embed == 1
    row = await queue.row()
    assert (row["generation"], row["stage"]) == (modelled.id, "embed")
    assert plain.id != modelled.id
    (claim,) = await queue.claim(stage=EMBED)
    async with queue.resources.postgres.across_tenants() as connection:
        await index_jobs.reset_to_index(connection, [claim])
    assert [one.record_id for one in await queue.claim(stage=INDEX)] == ["m"]


async def test_a_writer_cannot_confirm_a_job_that_a_worker_has_claimed(queue: Queue) -> None:
    """The writer holds no token: whoever claims has one, and the writer's claim stands no more."""
    await queue.begin()
    own = await queue.add_index("a", "m")
    (taken,) = await queue.claim(stage=INDEX)
    async with queue.resources.postgres.across_tenants() as connection:
        await index_jobs.confirm_indexed(connection, own)
    assert str((await queue.row())["lease_token"]) == taken.lease_token
    async with queue.resources.postgres.across_tenants() as connection:
        await index_jobs.confirm_indexed(connection, [taken])
    assert await queue.rows() == []


async def test_pending_jobs_are_counted_by_stage_for_a_tenant_and_for_the_fleet(queue: Queue) -> None:
    await queue.begin("model")
    await queue.add("a", "m1", "m2", "m3")
    await queue.add("b", "m1")
    await queue.add_index("a", "m1", "m2")
    (first, *_) = await queue.claim(1)
    async with queue.resources.postgres.across_tenants() as connection:
        everyone = {row["stage"]: row for row in await backlog.backlog_by_stage(connection)}
        assert await backlog.count_due(connection) == {"enrich": 3, "index": 2}
    async with queue.resources.postgres.for_tenant("a") as connection:
        mine = {row["stage"]: row for row in await backlog.backlog_by_stage(connection, "a")}
    assert {stage: row["pending"] for stage, row in everyone.items()} == {"enrich": 4, "index": 2}
    assert {stage: row["pending"] for stage, row in mine.items()} == {"enrich": 3, "index": 2}
    assert everyone["enrich"]["running"] == 1
    assert mine["enrich"]["running"] == (first.tenant == "a")
    assert 0 <= mine["index"]["oldest_age_seconds"] < 60


async def test_dead_jobs_are_counted_separately(queue: Queue) -> None:
    await queue.add("a", "m1", "m2")
    (claim, _) = await queue.claim()
    async with queue.resources.postgres.across_tenants() as connection:
        await dead_jobs.mark_dead(connection, claim, "why")
        (row,) = await backlog.backlog_by_stage(connection)
    assert (row["pending"], row["dead"]) == (1, 1)


async def test_cancelling_one_pipeline_leaves_the_other_and_invalidates_the_claim(queue: Queue) -> None:
    await queue.begin()
    await queue.add("a", "m")
    await queue.add_index("a", "m")
    (claim,) = await queue.claim()
    async with queue.resources.postgres.for_tenant("a") as connection:
        await job_queries.cancel(connection, "a", claim.kind, ["m"], claim.pipeline)
    assert [row["pipeline"] for row in await queue.rows()] == ["index"]
    assert await queue.finish(claim) == set()


async def test_counters_add_up_across_transactions(queue: Queue) -> None:
    for _ in range(3):
        async with queue.resources.postgres.across_tenants() as connection:
            await fleet_counters.increment(connection, "things", {"a": 2, "b": 0.5, "none": 0})
    async with queue.resources.postgres.across_tenants() as connection:
        found = {
            (row["name"], row["labels"]): row["value"] for row in await fleet_counters.read_all(connection)
        }
    assert found == {("things", "a"): 6, ("things", "b"): 1.5}
