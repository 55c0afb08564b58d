"""A rewriting is stored by the worker that has the job, and an outage ends no note as failed."""

import asyncio
import json
from collections.abc import Callable

import pytest
from sqlalchemy import func, update

from shared.foundation import errors
from shared.foundation.stages import ENRICH
from shared.jobs import claim
from shared.jobs.job import Job
from shared.jobs.table import job
from shared.memory.longterm.table import memory as memory_table
from tests.conftest import Gateway
from tests.integration.enrichment.conftest import enrich, live, load, save
from tests.standins.behaviours import Garbage, Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call
from workers.enrichment import enrich as enrichment
from workers.enrichment.rewrite import NoteRewriter

NOTE = "Ada has a boat."
GOOD = json.dumps([{"content": "Ada owns a boat."}])


def lose_job(gateway: Gateway, text: str) -> Callable[[Call], str]:
    """Return a reply during which another worker claims the job of the note."""
    loop = asyncio.get_running_loop()

    async def take_job() -> None:
        where = (job.c.tenant == gateway.tenant, job.c.stage == ENRICH.name)
        taken = {
            "lease_token": func.gen_random_uuid(),
            "run_at": func.now() + func.make_interval(0, 0, 0, 0, 1),
        }
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
            await tx.execute(update(job).where(*where).values(taken))

    def reply(call: Call) -> str:
        del call
        asyncio.run_coroutine_threadsafe(take_job(), loop).result(10)
        return text

    return reply


@pytest.mark.parametrize("text", [GOOD, "Sure!"])
async def test_nothing_is_stored_if_another_worker_has_the_job_by_then(
    enricher: Gateway, models: ModelServer, text: str
) -> None:
    models.chat_default = Reply(lose_job(enricher, text))
    note = await enrich(enricher, NOTE)
    assert note["state"] == "pending"
    assert await live(enricher) == [NOTE]


async def test_a_note_that_is_not_pending_any_more_costs_no_call(
    enricher: Gateway, models: ModelServer
) -> None:
    memory_id = await save(enricher, NOTE)
    where = (memory_table.c.tenant == enricher.tenant, memory_table.c.id == memory_id)
    async with enricher.resources.postgres.for_tenant(enricher.tenant) as tx:
        await tx.execute(update(memory_table).where(*where).values(state="final"))
    await enrichment.enrich(enricher.resources, await claim_note(enricher), lambda: None)
    assert models.chat_calls == []
    assert (await load(enricher, memory_id))["state"] == "final"


async def test_a_useless_answer_is_asked_for_once_more(enricher: Gateway, models: ModelServer) -> None:
    models.chat_default = Reply(lambda _: "Sure!" if len(models.chat_calls) == 1 else GOOD)
    note = await enrich(enricher, NOTE)
    assert note["state"] == "archived"
    assert await live(enricher) == ["Ada owns a boat."]


async def test_a_note_goes_with_a_memory_that_said_a_part_of_it_before(
    enricher: Gateway, models: ModelServer
) -> None:
    """The memory was not made from the note, but the note says the same."""
    models.chat_default = Reply(GOOD)
    known_id = await save(enricher, "Ada owns a boat.", enrich=False)
    note = await enrich(enricher, NOTE)
    assert note["superseded_by"] == [known_id]

    await enricher.client.delete(f"/v1/memories/{known_id}")

    assert (await enricher.client.get(f"/v1/memories/{note['id']}")).status_code == 404


async def claim_note(gateway: Gateway, attempts: int = 1) -> Job:
    """Claim the only note of the tenant at this attempt."""
    where = (job.c.tenant == gateway.tenant, job.c.stage == ENRICH.name)
    async with gateway.resources.postgres.across_tenants() as tx:
        due = {"run_at": func.now(), "attempts": attempts - 1, "lease_token": None}
        await tx.execute(update(job).where(*where).values(due))
    async with gateway.resources.postgres.across_tenants() as tx:
        jobs = await claim.claim_batch(tx, ENRICH, 100, 60, 1000)
    [claimed] = [item for item in jobs if item.tenant == gateway.tenant]
    return claimed


@pytest.mark.parametrize(
    ("uses_attempt", "is_last", "state"),
    [(False, True, "pending"), (True, False, "pending"), (True, True, "failed")],
)
async def test_only_the_last_attempt_to_which_a_note_may_be_to_blame_ends_it(
    enricher: Gateway, monkeypatch: pytest.MonkeyPatch, *, uses_attempt: bool, is_last: bool, state: str
) -> None:
    async def fail(rewriter: NoteRewriter) -> None:
        del rewriter
        error = errors.Unavailable("the model", "away")
        error.uses_attempt = uses_attempt
        raise error

    monkeypatch.setattr(NoteRewriter, "rewrite", fail)
    memory_id = await save(enricher, NOTE)
    last = enricher.resources.settings.job_max_attempts
    claimed = await claim_note(enricher, last if is_last else 1)
    await enrichment.enrich(enricher.resources, claimed, lambda: None)
    assert (await load(enricher, memory_id))["state"] == state


@pytest.mark.parametrize("body", ["<html><body>Hi</body></html>", "", "[]", '{"choices": [', "{}"])
async def test_an_endpoint_that_answers_something_else_ends_no_note(
    enricher: Gateway, models: ModelServer, body: str
) -> None:
    models.chat_default = Garbage(body)
    memory_id = await save(enricher, NOTE)
    claimed = await claim_note(enricher, enricher.resources.settings.job_max_attempts)
    await enrichment.enrich(enricher.resources, claimed, lambda: None)
    assert (await load(enricher, memory_id))["state"] == "pending"
    assert len(models.chat_calls) == 1, "the same endpoint is not asked again at once"
