"""Jobs whose worker died at every attempt end in a state that names the reason."""

from collections.abc import AsyncIterator, Callable

import pytest
import structlog
from sqlalchemy import text
from structlog.testing import LogCapture

from shared.foundation import config, stages
from shared.foundation.stages import RecordKind
from shared.jobs import backlog, dead_jobs, index_jobs, summary_jobs
from tests.conftest import Gateway, running_gateway
from tests.integration.spend.conftest import metric
from tests.integration.sweep.stack import TestStack
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

REASON = "its worker ended 2 times while working on it"
DEATHS = "loci_job_deaths_total"


@pytest.fixture(scope="module")
async def fleet(
    make_settings: Callable[..., config.Settings], module_models: ModelServer
) -> AsyncIterator[Gateway]:
    """Start a gateway with a language model and two attempts for each job."""
    module_models.chat_default = Reply("[]")
    settings = make_settings(apart=True, llm_base_url=module_models.url, llm_model="m", job_max_attempts=2)
    async with running_gateway(settings, "first") as gateway:
        yield gateway


async def claim(stack: TestStack, record_id: str, stage: str, attempts: int, *, lease: float) -> None:
    """Leave a job as a killed worker does: claimed, with a lease that ends in `lease` seconds."""
    await stack.sql(
        "UPDATE job SET lease_token = gen_random_uuid(), attempts = :attempts,"
        " run_at = now() + make_interval(secs => :lease) WHERE record_id = :record_id AND stage = :stage",
        record_id=record_id,
        stage=stage,
        attempts=attempts,
        lease=lease,
    )


async def test_a_summary_whose_worker_died_at_every_attempt_is_left_to_the_next_step_of_the_window(
    stack: TestStack,
) -> None:
    session = await stack.open_session()
    for pipeline, stage in (("summary", "summarize"), ("idle", "expire_window")):
        await stack.sql(
            "INSERT INTO job (tenant, kind, record_id, pipeline, stage, version)"
            " VALUES (:tenant, 'session', :session, :pipeline, :stage, 1)",
            tenant=stack.tenant,
            session=session,
            pipeline=pipeline,
            stage=stage,
        )
        await claim(stack, session, stage, 2, lease=-1)
    assert (await stack.sweep()).exhausted_jobs == 2
    assert await stack.sql("SELECT stage FROM job WHERE record_id = :session", session=session) == []
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        await summary_jobs.schedule_summary(tx, session)
    assert (await stack.client.get("/v1/status")).json()["pending"]["summary"] == 1


async def test_an_enrichment_whose_worker_died_at_every_attempt_ends_as_failed(stack: TestStack) -> None:
    exhausted, leased, retried = [
        await stack.save(name) for name in ("killer note", "running note", "once note")
    ]
    await claim(stack, exhausted, "enrich", 2, lease=-1)
    await claim(stack, leased, "enrich", 2, lease=60)
    await claim(stack, retried, "enrich", 1, lease=-1)
    counts = await stack.sweep()
    assert counts.exhausted_jobs == 1
    states = {
        row.id: (row.state, row.failure_reason)
        for row in await stack.sql("SELECT id, state, failure_reason FROM memory")
    }
    assert states == {exhausted: ("failed", REASON), leased: ("pending", None), retried: ("pending", None)}
    assert {row.record_id for row in await stack.sql("SELECT record_id FROM job WHERE stage = 'enrich'")} == {
        leased,
        retried,
    }
    assert exhausted in await stack.search("killer note")
    history = (await stack.client.get(f"/v1/memories/{exhausted}/history")).json()["results"]
    assert [(item["actor"], item["action"], item["reason"]) for item in history][1:] == [
        ("enrichment", "failed", REASON)
    ]
    assert await stack.repairs() == {"exhausted_jobs": 1}
    assert (await stack.sweep()).exhausted_jobs == 0


async def test_a_job_released_at_its_last_attempt_is_ended_too(stack: TestStack) -> None:
    memory_id = await stack.save("released")
    await stack.sql("UPDATE job SET attempts = 2, lease_token = NULL WHERE stage = 'enrich'")
    assert (await stack.sweep()).exhausted_jobs == 1
    assert (await stack.client.get(f"/v1/memories/{memory_id}")).json()["state"] == "failed"


async def test_an_exhausted_index_job_is_marked_dead_and_reported(stack: TestStack) -> None:
    exhausted, other = await stack.save("killer", enrich=False), await stack.save("fine", enrich=False)
    await stack.resources.index_writer.close()
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        await index_jobs.enqueue_index_jobs(tx, stack.tenant, RecordKind.MEMORY, {exhausted: 1, other: 1})
    await claim(stack, exhausted, "index", 2, lease=-1)
    assert (await stack.sweep()).exhausted_jobs == 1
    rows = await stack.sql(
        "SELECT record_id, dead_at IS NOT NULL AS dead, last_error FROM job WHERE kind = 'memory'"
    )
    assert {tuple(row) for row in rows} == {(exhausted, True, REASON), (other, False, None)}
    status = (await stack.client.get("/v1/status")).json()
    assert (status["dead"]["index"], status["pending"]["index"]) == (1, 1)
    assert 'loci_jobs_dead{stage="index"} 1.0' in (await stack.client.get("/metrics")).text
    await stack.process_all()
    assert {row.record_id for row in await stack.sql("SELECT record_id FROM job WHERE kind = 'memory'")} == {
        exhausted
    }


async def test_a_job_that_used_up_its_attempts_raises_the_metric_and_is_logged(
    stack: TestStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A logger of its own: the module's may be cached with the processors of an earlier test.
    capture = LogCapture()
    monkeypatch.setattr(dead_jobs, "log", structlog.wrap_logger(None, processors=[capture]))
    exhausted = await stack.save("exhausted", enrich=False)
    await stack.resources.index_writer.close()
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        await index_jobs.enqueue_index_jobs(tx, stack.tenant, RecordKind.MEMORY, {exhausted: 1})
    await claim(stack, exhausted, "index", 2, lease=-1)
    deaths = await metric(stack.gateway, DEATHS, 'kind="index"')
    await stack.sweep()
    await stack.sweep()
    assert await metric(stack.gateway, DEATHS, 'kind="index"') == deaths + 1
    assert [
        (event["stage"], event["reason"]) for event in capture.entries if event["event"] == "job_dead"
    ] == [("index", REASON)]


async def test_a_dead_job_is_left_alone_until_its_record_changes(stack: TestStack) -> None:
    memory_id = await stack.save("killer", enrich=False)
    await stack.resources.index_writer.close()
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        await index_jobs.enqueue_index_jobs(tx, stack.tenant, RecordKind.MEMORY, {memory_id: 1})
    await claim(stack, memory_id, "index", 2, lease=-1)
    await stack.sweep()
    await stack.delete_points(RecordKind.MEMORY, [memory_id])
    counts = await stack.sweep()
    assert (counts.exhausted_jobs, counts.missing_points) == (0, 0)
    await stack.client.patch(f"/v1/memories/{memory_id}", json={"content": "edited killer"})
    assert await stack.search("edited") == [memory_id]
    await stack.resources.index_writer.close()
    assert await stack.sql("SELECT record_id FROM job WHERE kind = 'memory'") == []


async def test_a_job_that_its_worker_completes_meanwhile_is_not_ended(stack: TestStack) -> None:
    """The slow worker completes the job between listing and ending it: its outcome stands."""
    await claim(stack, await stack.save("slow"), "enrich", 2, lease=-1)
    async with stack.resources.postgres.across_tenants() as tx:
        jobs = await backlog.list_exhausted(tx, 2, 10)
        await tx.execute(text("DELETE FROM job WHERE stage = :stage"), {"stage": stages.ENRICH.name})
    assert len(jobs) == 1
    assert (await stack.sweep()).exhausted_jobs == 0
    assert [row.state for row in await stack.sql("SELECT state FROM memory")] == ["pending"]


async def test_a_sweep_makes_an_oversized_memory_due_once(stack: TestStack) -> None:
    """LT16: not while it waits for a worker."""
    memory_id = await stack.save("A long story. " * 300, enrich=False)
    assert [(await stack.sweep()).oversized_memories for _ in range(2)] == [1, 0]
    jobs = await stack.sql("SELECT record_id FROM job WHERE stage = 'enrich'")
    assert jobs == [(memory_id,)]
