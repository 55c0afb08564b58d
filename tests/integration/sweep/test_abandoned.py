"""F1, F14, I10: work that nobody came back from as often as allowed comes to an end that says why."""

from collections.abc import AsyncIterator, Callable

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from shared.foundation import config, stages
from shared.foundation.stages import RecordKind
from shared.jobs import backlog, index_jobs
from shared.search.index.points import remove
from tests.conftest import Gateway, serving
from tests.integration.spend.conftest import metric
from tests.integration.sweep.house import TestStack
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

REASON = "its worker ended 2 times while working on it"
DEATHS = "loci_job_deaths_total"


@pytest.fixture(scope="module")
async def fleet(
    make_settings: Callable[..., config.Settings], standin: ModelServer
) -> AsyncIterator[Gateway]:
    """A gateway where a model enriches, and work is tried twice."""
    standin.chat_default = Reply("[]")
    settings = make_settings(apart=True, llm_base_url=standin.url, llm_model="m", job_max_attempts=2)
    async with serving(settings, "first") as gateway:
        yield gateway


async def hold(house: TestStack, ref: str, stage: str, attempts: int, *, lease: float) -> None:
    """Make a row what a worker leaves that was killed: claimed, its lease over in `lease` seconds."""
    await house.sql(
        "UPDATE job SET lease_token = gen_random_uuid(), attempts = :attempts,"
        " run_at = now() + make_interval(secs => :lease) WHERE ref = :ref AND stage = :stage",
        ref=ref,
        stage=stage,
        attempts=attempts,
        lease=lease,
    )


async def test_an_enrichment_that_took_its_worker_down_each_time_ends_as_failed(house: TestStack) -> None:
    killer, running, once = [await house.save(name) for name in ("killer note", "running note", "once note")]
    await hold(house, killer, "enrich", 2, lease=-1)
    await hold(house, running, "enrich", 2, lease=60)
    await hold(house, once, "enrich", 1, lease=-1)
    counts = await house.sweep()
    assert counts.exhausted_jobs == 1
    states = {
        row.id: (row.state, row.failure_reason)
        for row in await house.sql("SELECT id, state, failure_reason FROM memory")
    }
    assert states == {killer: ("failed", REASON), running: ("pending", None), once: ("pending", None)}
    assert {row.record_id for row in await house.sql("SELECT record_id FROM job WHERE stage = 'enrich'")} == {
        running,
        once,
    }
    assert killer in await house.found("killer note")
    notes = (await house.client.get(f"/v1/memories/{killer}/history")).json()["results"]
    assert [(note["actor"], note["action"], note["reason"]) for note in notes][1:] == [
        ("enrichment", "failed", REASON)
    ]
    assert await house.repairs() == {"abandoned": 1}
    assert (await house.sweep()).exhausted_jobs == 0


async def test_one_that_was_given_back_at_its_last_attempt_is_ended_too(house: TestStack) -> None:
    entry = await house.save("given back")
    await house.sql("UPDATE job SET attempts = 2, lease_token = NULL WHERE stage = 'enrich'")
    assert (await house.sweep()).exhausted_jobs == 1
    assert (await house.client.get(f"/v1/memories/{entry}")).json()["state"] == "failed"


async def test_an_index_row_that_took_its_worker_down_is_buried_and_shown(house: TestStack) -> None:
    killer, fine = await house.save("killer", enrich=False), await house.save("fine", enrich=False)
    await house.resources.index_writer.close()
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        await index_jobs.enqueue_index_jobs(connection, house.tenant, RecordKind.MEMORY, {killer: 1, fine: 1})
    await hold(house, killer, "index", 2, lease=-1)
    assert (await house.sweep()).exhausted_jobs == 1
    rows = await house.sql(
        "SELECT record_id, dead_at IS NOT NULL AS dead, last_error FROM job WHERE kind = 'memory'"
    )
    assert {tuple(row) for row in rows} == {(killer, True, REASON), (fine, False, None)}
    told = (await house.client.get("/v1/status")).json()
    assert (told["dead"]["index"], told["pending"]["index"]) == (1, 1)
    assert 'loci_jobs_dead{stage="index"} 1.0' in (await house.client.get("/metrics")).text
    await house.settle()
    assert {row.record_id for row in await house.sql("SELECT record_id FROM job WHERE kind = 'memory'")} == {
        killer
    }


async def test_a_job_that_used_up_its_attempts_raises_the_metric_and_is_logged(house: TestStack) -> None:
    exhausted = await house.save("exhausted", enrich=False)
    await house.resources.index_writer.close()
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        await index_jobs.enqueue_index_jobs(connection, house.tenant, RecordKind.MEMORY, {exhausted: 1})
    await hold(house, exhausted, "index", 2, lease=-1)
    deaths = await metric(house.gateway, DEATHS, 'kind="index"')
    with capture_logs() as logged:
        await house.sweep()
        await house.sweep()
    assert await metric(house.gateway, DEATHS, 'kind="index"') == deaths + 1
    assert [(entry["stage"], entry["reason"]) for entry in logged if entry["event"] == "job_dead"] == [
        ("index", REASON)
    ]


async def test_a_buried_row_is_left_in_peace_until_its_record_changes(house: TestStack) -> None:
    entry = await house.save("killer", enrich=False)
    await house.resources.index_writer.close()
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        await index_jobs.enqueue_index_jobs(connection, house.tenant, RecordKind.MEMORY, {entry: 1})
    await hold(house, entry, "index", 2, lease=-1)
    await house.sweep()
    await remove(house.resources.qdrant, (await house.live()).collection, house.tenant, entry)
    counts = await house.sweep()
    assert (counts.exhausted_jobs, counts.missing_points) == (0, 0)
    await house.client.patch(f"/v1/memories/{entry}", json={"content": "mended killer"})
    assert await house.found("mended") == [entry]
    await house.resources.index_writer.close()
    assert await house.sql("SELECT record_id FROM job WHERE kind = 'memory'") == []


async def test_a_row_of_a_claim_that_came_back_meanwhile_is_not_ended(house: TestStack) -> None:
    """The zombie finished between the look and the end: its answer stands."""
    await hold(house, await house.save("slow"), "enrich", 2, lease=-1)
    async with house.resources.postgres.across_tenants() as connection:
        claims = await backlog.list_exhausted(connection, 2, 10)
        await connection.execute(text("DELETE FROM job WHERE stage = :stage"), {"stage": stages.ENRICH.name})
    assert len(claims) == 1
    assert (await house.sweep()).exhausted_jobs == 0
    assert [row.state for row in await house.sql("SELECT state FROM memory")] == ["pending"]
