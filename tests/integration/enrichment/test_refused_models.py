"""MO2: what an endpoint refuses pauses its stage; what is away waits; neither ends a memory as failed."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import func, select, update

from shared.foundation import config
from shared.jobs.table import job, model_pause
from tests.conftest import Gateway, running_gateway
from tests.draining import drain, make_due
from tests.integration.enrichment.conftest import enrich, load, save
from tests.integration.enrichment.limited_model import Limited
from tests.standins.behaviours import Drop, Garbage, Refusal, Reply, Status, Truncated, WrongShape
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour, Call, Wire

Open = Callable[..., AbstractAsyncContextManager[Gateway]]
MAX_ATTEMPTS = 2
SETTINGS = {"llm_model": "m", "job_max_attempts": MAX_ATTEMPTS, "job_backoff": 0.01}


@pytest.fixture
def open_gateway(
    make_settings: Callable[..., config.Settings], database: dict[str, str], models: ModelServer, tenant: str
) -> Open:
    """Return a function that opens gateways on one database of the test's own: pauses are for all tenants."""
    first = make_settings(**database, llm_base_url=models.url, **SETTINGS)

    @asynccontextmanager
    async def open_with(**changes: Any) -> AsyncIterator[Gateway]:
        async with running_gateway(first.model_copy(update=changes), tenant) as gateway:
            yield gateway

    return open_with


def repeat(call: Call) -> str:
    """Return the note as a memory."""
    return json.dumps([{"content": json.loads(call.body["messages"][-1]["content"])["content"]}])


async def status_of(gateway: Gateway) -> dict[str, Any]:
    return dict((await gateway.client.get("/v1/status")).json())


async def make_probe_due(gateway: Gateway) -> None:
    async with gateway.resources.postgres.across_tenants() as tx:
        await tx.execute(update(model_pause).values(next_probe_at=func.now()))


async def attempts(gateway: Gateway) -> list[int]:
    async with gateway.resources.postgres.across_tenants() as tx:
        rows = await tx.scalars(select(job.c.attempts).where(job.c.stage == "enrich"))
        return list(rows)


@pytest.mark.parametrize(
    ("behaviour", "reason_code"),
    [
        (Status(401), "key_refused"),
        (Status(403), "not_permitted"),
        (Status(404), "model_unknown"),
        (Status(429, error_code="insufficient_quota"), "quota_used_up"),
        (Status(400), "request_refused"),
        (Garbage(), "request_refused"),
        (WrongShape({"status": "up"}), "request_refused"),
    ],
)
async def test_a_refusal_pauses_the_stage_and_one_probe_in_a_minute_ends_the_pause(
    open_gateway: Open, models: ModelServer, behaviour: Behaviour, reason_code: str
) -> None:
    models.chat_default = behaviour
    async with open_gateway() as gateway:
        saved_ids = [await save(gateway, f"Ada has {number} boats.") for number in range(10)]
        for _ in range(4):
            await drain(gateway.resources)
        first_call_count = len(models.chat_calls)
        assert first_call_count <= 2 * gateway.resources.settings.llm_concurrency
        [paused] = (await status_of(gateway))["paused"]
        assert (paused["stage"], paused["reason_code"]) == ("enrichment", reason_code)
        assert paused["since"]
        assert (await status_of(gateway))["pending"]["enrichment"] == 10
        assert await attempts(gateway) == [0] * 10
        metrics = (await gateway.client.get("/metrics")).text
        assert f'loci_stage_paused{{reason_code="{reason_code}",stage="enrichment"}} 1.0' in metrics

        await make_probe_due(gateway)
        for _ in range(4):
            await drain(gateway.resources)
        assert len(models.chat_calls) - first_call_count in {1, 2}, "with a schema, and perhaps without it"

        models.chat_default = Reply(repeat)
        await make_probe_due(gateway)
        await drain(gateway.resources)
        await drain(gateway.resources)
        assert (await status_of(gateway))["paused"] == []
        assert {(await load(gateway, memory_id))["state"] for memory_id in saved_ids} == {"archived"}


async def test_a_start_with_other_settings_probes_at_once_and_only_once(
    open_gateway: Open, models: ModelServer
) -> None:
    models.chat_default = Status(401)
    async with open_gateway() as gateway:
        memory_id = await save(gateway, "Ada has a boat.")
        await drain(gateway.resources)
        call_count = len(models.chat_calls)
    async with open_gateway() as gateway:
        await drain(gateway.resources)
        assert len(models.chat_calls) == call_count, "the same settings wait for the next probe"
    async with open_gateway(llm_api_key=SecretStr("another")) as gateway:
        for _ in range(3):
            await drain(gateway.resources)
        assert len(models.chat_calls) == call_count + 1
    models.chat_default = Reply(repeat)
    async with open_gateway(llm_api_key=SecretStr("right")) as gateway:
        await drain(gateway.resources)
        assert (await load(gateway, memory_id))["state"] == "archived"
        assert (await status_of(gateway))["paused"] == []


@pytest.mark.parametrize("behaviour", [Status(429), Status(500), Status(503), Drop()])
async def test_a_model_that_is_away_never_ends_a_memory_as_failed(
    open_gateway: Open, models: ModelServer, behaviour: Behaviour
) -> None:
    models.chat_default = behaviour
    async with open_gateway() as gateway:
        memory_id = await save(gateway, "Ada has a boat.")
        for _ in range(6):
            await make_due(gateway.resources)
            await drain(gateway.resources)
        assert len(models.chat_calls) >= 6
        assert (await load(gateway, memory_id))["state"] == "pending"
        assert await attempts(gateway) == [0]
        models.chat_default = Reply(repeat)
        await make_due(gateway.resources)
        await drain(gateway.resources)
        assert (await load(gateway, memory_id))["state"] == "archived"


@pytest.mark.parametrize("behaviour", [Reply("Sure!"), Refusal(), Status(400), Reply('[{"content": 7}]')])
async def test_nonsense_about_one_memory_ends_only_that_one(
    open_gateway: Open, models: ModelServer, behaviour: Behaviour
) -> None:
    models.chat_default = Reply(repeat)
    async with open_gateway() as gateway:
        assert (await enrich(gateway, "Ada has a boat."))["state"] == "archived"
        models.chat_replies.extend([behaviour] * (4 if isinstance(behaviour, Status) else 2))
        bad_id = await save(gateway, "Bob has a car.")
        await drain(gateway.resources)
        good = await enrich(gateway, "Cleo has a cat.")
        bad = await load(gateway, bad_id)
        assert (bad["state"], good["state"]) == ("failed", "archived")
        assert bad["failure_reason"]
        assert (await status_of(gateway))["paused"] == []


async def test_a_prompt_that_is_too_long_is_split(open_gateway: Open, models: ModelServer) -> None:
    models.chat_default = Reply(repeat)
    async with open_gateway() as gateway:
        models.chat_replies.append(Status(400, error_code="context_length_exceeded"))
        raw = await enrich(gateway, "Ada has a boat. Bob has a car.")
        assert (raw["state"], len(raw["superseded_by"])) == ("archived", 2)


async def test_a_probe_that_is_cut_off_ends_the_pause(open_gateway: Open, models: ModelServer) -> None:
    models.chat_default = Status(401)
    async with open_gateway() as gateway:
        await enrich(gateway, "Ada has a boat")
        models.chat_default = Truncated("[" * 9)
        await make_probe_due(gateway)
        await drain(gateway.resources)
        assert (await status_of(gateway))["paused"] == []


async def test_a_note_over_the_number_of_tokens_is_split_without_a_call(
    open_gateway: Open, models: ModelServer
) -> None:
    models.chat_default = Limited(400, "length")
    note = " ".join(f"Drawer {number} holds the tool T{number * 7}." for number in range(400))
    async with open_gateway(llm_prompt_tokens=3000) as gateway:
        raw = await enrich(gateway, note)
        assert raw["state"] == "archived"
        notes = [json.loads(call.body["messages"][-1]["content"])["content"] for call in models.chat_calls]
        assert len(notes) > 1
        assert "".join(notes) == note
    async with open_gateway(llm_prompt_tokens=10) as gateway:
        failed = await enrich(gateway, "Ada has a boat. Bob has a car.")
        assert (failed["state"], failed["failure_reason"][:22]) == ("failed", "too long for the model")
        assert len(models.chat_calls) == len(notes)


@dataclass(frozen=True)
class NoModelForPoison:
    """Answer in the model's place what speaks of poison, and repeat every other note."""

    behaviour: Behaviour

    def play(self, call: Call, wire: Wire) -> None:
        """Answer."""
        (self.behaviour if "poison" in call.prompt else Reply(repeat)).play(call, wire)


@pytest.mark.parametrize("behaviour", [Garbage(), Garbage(""), WrongShape({"status": "up"})])
async def test_a_note_that_no_model_answers_fails_after_its_attempts_if_others_are_answered(
    open_gateway: Open, models: ModelServer, behaviour: Behaviour
) -> None:
    models.chat_default = NoModelForPoison(behaviour)
    async with open_gateway() as gateway:
        assert (await enrich(gateway, "Ada has a boat."))["state"] == "archived"
        poison = await save(gateway, "The poison is in the cup.")
        for number in range(MAX_ATTEMPTS):
            assert (await load(gateway, poison))["state"] == "pending", number
            await make_due(gateway.resources)
            await drain(gateway.resources)
        failed = await load(gateway, poison)
        assert (failed["state"], failed["content"]) == ("failed", "The poison is in the cup.")
        assert "its response" in failed["failure_reason"]
        assert sum("poison" in call.prompt for call in models.chat_calls) == MAX_ATTEMPTS
        assert (await status_of(gateway))["paused"] == []


class RefusePoison:
    """Refuse what speaks of poison, and repeat every other note."""

    def play(self, call: Call, wire: Wire) -> None:
        """Answer."""
        behaviour = Status(403, message="flagged") if "poison" in call.prompt else Reply(repeat)
        behaviour.play(call, wire)


async def test_a_note_that_is_refused_itself_does_not_pause_its_stage_for_ever(
    open_gateway: Open, models: ModelServer
) -> None:
    models.chat_default = RefusePoison()
    async with open_gateway(llm_concurrency=1) as gateway:
        poison = await save(gateway, "The poison is in the cup.")
        for number in range(MAX_ATTEMPTS + 1):
            await drain(gateway.resources)
            assert (await load(gateway, poison))["state"] == "pending", number
            assert len((await status_of(gateway))["paused"]) == 1
            await save(gateway, f"Note {number}.")
            await make_probe_due(gateway)
            await drain(gateway.resources)
        assert (await load(gateway, poison))["state"] == "failed"
        await save(gateway, "The last note.")
        await make_probe_due(gateway)
        await drain(gateway.resources)
        assert (await status_of(gateway))["paused"] == []
