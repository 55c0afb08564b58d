"""CV5: turns are mined when their scope is at rest or has twenty of them, where the agent says so."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.table import session as session_table
from shared.conversation.turns import append
from shared.conversation.turns.turn import TurnDraft
from shared.foundation import config
from shared.foundation.roles import Role
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import MINE_START
from shared.jobs import claim, mining_schedule
from shared.jobs.job import Job
from shared.jobs.table import job
from tests.conftest import Gateway, running_gateway
from tests.draining import make_due
from tests.integration.mining.conftest import Talker, propose
from tests.locks import wait_until_blocked
from tests.standins.models import ModelServer
from workers.enrichment import due_mining

Serve = Callable[..., Any]


@pytest.fixture
def serve(
    make_settings: Callable[..., config.Settings], database: dict[str, str], models: ModelServer, tenant: str
) -> Serve:
    """Return a gateway with a model that finds no fact."""
    models.chat_default = propose()

    @asynccontextmanager
    async def make(**changes: Any) -> AsyncIterator[Talker]:
        settings = make_settings(**database, **{"llm_base_url": models.url, "llm_model": "m"} | changes)
        async with running_gateway(settings, tenant) as served:
            yield Talker(served)

    return make


async def due_in(gateway: Gateway) -> list[float]:
    """Return in how many seconds scopes are due for mining."""
    seconds = func.extract("epoch", job.c.run_at - func.now())
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        rows = await tx.scalars(select(seconds).where(job.c.stage == MINE_START.name))
        return [round(float(value), 1) for value in rows]


async def rest(gateway: Gateway) -> None:
    """Let the last turns lie an hour back, instead of waiting."""
    earlier = session_table.c.last_turn_at - timedelta(hours=1)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(update(session_table).values(last_turn_at=earlier))


async def start_due(talker: Talker) -> list[str]:
    """Start what is due, and return the actors of all runs."""
    await make_due(talker.gateway.resources)
    await due_mining.start_due_mining(talker.gateway.resources)
    return [run["actor"] for run in (await talker.request("GET", "/v1/dreams"))["results"]]


async def test_a_scope_is_mined_when_it_is_at_rest_for_a_minute(serve: Serve) -> None:
    async with serve() as talker:
        await talker.talk("I live in Aarhus.", "Noted.")
        [seconds] = await due_in(talker.gateway)
        assert 55 < seconds <= 60
        assert (await talker.request("GET", "/v1/status"))["pending"]["mining"] == 0, "nothing is late"
        assert await start_due(talker) == [], "it is not at rest yet"
        [seconds] = await due_in(talker.gateway)
        assert 50 < seconds <= 60
        await rest(talker.gateway)
        assert await start_due(talker) == ["mining"]
        assert await due_in(talker.gateway) == []
        assert (await talker.request("GET", "/v1/status"))["pending"]["mining"] == 1


async def test_twenty_turns_of_several_sessions_are_mined_without_waiting(serve: Serve) -> None:
    async with serve() as talker:
        for _ in range(3):
            await talker.talk("Hello.", "Hi.", "I live in Aarhus.", "Noted.", "Bye.", "Bye.")
        [seconds] = await due_in(talker.gateway)
        assert seconds > 0, "eighteen turns wait"
        await talker.talk("Hello.", "Hi.")
        [seconds] = await due_in(talker.gateway)
        assert seconds <= 0
        assert await start_due(talker) == ["mining"]
        run = (await talker.request("GET", "/v1/dreams"))["results"][0]
        assert len((await talker.execute(run))["passes"][0]["inputs"]["turns"]) == 20
        await rest(talker.gateway)
        await talker.talk("Hello.")
        await talker.mine(await talker.talk("Bye."))
        assert await due_in(talker.gateway) == [], "a run that was asked for has read them"
        assert await start_due(talker) == ["mining", "mining"]


@pytest.mark.parametrize(
    ("profile", "session", "is_mined"),
    [
        ({}, {}, True),
        ({}, {"user_id": None}, False),
        ({"mine_common": True}, {"user_id": None}, True),
        ({"mine_common": True, "mine_facts": False}, {"user_id": None}, False),
        ({"mine_facts": False}, {}, False),
        ({"mine_facts": None}, {}, True),
        ({"mine_common": True}, {"kind": "patrol", "name": "night"}, False),
        ({"mine_common": True}, {"kind": "subagent"}, False),
    ],
)
async def test_who_is_mined_is_up_to_the_agent_and_patrols_never_are(
    talker: Talker, profile: dict[str, Any], session: dict[str, Any], *, is_mined: bool
) -> None:
    agent = await talker.request("PUT", "/v1/agents/guide", json=profile)
    assert agent["mine_facts"] is (profile.get("mine_facts") is not False)
    session_id = await talker.talk("I live in Aarhus.", "Noted.", agent_id="guide", **session)
    assert len(await due_in(talker.gateway)) == is_mined
    path = f"/v1/sessions/{session_id}/mine"
    await talker.request("POST", path, status=202 if is_mined else 409)
    user = {key: value for key, value in {"user_id": "ada", **session}.items() if key == "user_id"}
    body = {"agent_id": "guide", "passes": ["mine_facts"], **user}
    if not is_mined:
        run = await talker.request("POST", "/v1/dreams", json=body, status=201)
        assert (await talker.execute(run))["passes"][0]["state"] == "skipped"


async def test_without_a_model_nothing_waits(serve: Serve) -> None:
    for changes in (
        {"llm_base_url": None},
        {"dream_enabled": False},
        {"dream_disabled_passes": ["mine_facts"]},
    ):
        async with serve(**changes) as talker:
            await talker.talk("I live in Aarhus.", "Noted.")
            assert await due_in(talker.gateway) == []


async def test_mining_comes_first_in_a_run_and_does_not_delay_the_next(serve: Serve) -> None:
    async with serve() as talker:
        session = await talker.talk("I live in Aarhus.", "Noted.")
        run = await talker.request("POST", "/v1/dreams", json={"user_id": "ada"}, status=201)
        assert run["passes"][0]["name"] == "mine_facts"
        await talker.execute(run)
        await rest(talker.gateway)
        assert await start_due(talker) == [run["actor"]], "its turns were mined by that run"
        assert (await talker.mine(session))["actor"] == "mining"


async def test_a_scope_whose_run_has_not_ended_is_mined_after_it(serve: Serve) -> None:
    async with serve() as talker:
        await talker.talk("I live in Aarhus.", "Noted.")
        await talker.request(
            "POST", "/v1/dreams", json={"user_id": "ada", "passes": ["deduplicate"]}, status=201
        )
        await rest(talker.gateway)
        await start_due(talker)
        assert len((await talker.request("GET", "/v1/dreams"))["results"]) == 1
        [seconds] = await due_in(talker.gateway)
        assert 0 < seconds <= 5


async def claim_job(gateway: Gateway) -> Job:
    await make_due(gateway.resources)
    async with gateway.resources.postgres.across_tenants() as tx:
        [claimed] = await claim.claim_batch(tx, MINE_START, 10, 60, 5)
    return claimed


async def test_a_turn_that_is_stored_while_its_scope_is_looked_at_is_mined(serve: Serve) -> None:
    async with serve() as talker:
        session_id = await talker.talk("I live in Aarhus.", "Noted.")
        claimed = await claim_job(talker.gateway)
        await talker.mine(session_id)
        resources, settings = talker.gateway.resources, talker.gateway.resources.settings
        caller = Caller("key", talker.tenant, frozenset({"read", "write"}))
        async with resources.transaction(talker.tenant) as tx:
            session = await get_session(tx, settings, caller, session_id, lock=True)
            draft = TurnDraft(role=Role.USER, content="I moved to Odense.")
            turns = await append.insert_turns(tx, resources, session, [draft], [draft.origin(caller)])
            await append.notify_dreams(tx, settings, session, turns)
            looking = asyncio.create_task(due_mining.start_or_reschedule(resources, claimed))
            await wait_until_blocked(tx, looking)
        await looking
        [seconds] = await due_in(talker.gateway)
        assert 0 < seconds <= 60


async def test_turns_of_two_sessions_do_not_wait_for_each_other(serve: Serve) -> None:
    async with serve() as talker:
        await talker.talk("I live in Aarhus.", "Noted.")
        resources, scope = talker.gateway.resources, Scope(talker.tenant, "default", "ada")
        async with asyncio.timeout(5), resources.postgres.for_tenant(talker.tenant) as tx:
            await mining_schedule.count_turns(tx, resources.settings, scope, 1)
            await talker.talk("Bye.")
            await mining_schedule.count_turns(tx, resources.settings, scope, 1)


async def test_no_run_is_started_by_a_worker_that_has_lost_the_job(serve: Serve) -> None:
    async with serve() as talker:
        await talker.talk("I live in Aarhus.", "Noted.")
        await rest(talker.gateway)
        claimed = await claim_job(talker.gateway)
        lost = replace(claimed, lease_token=str(uuid4()))
        await due_mining.start_or_reschedule(talker.gateway.resources, lost)
        assert (await talker.request("GET", "/v1/dreams"))["results"] == []
        await due_mining.start_or_reschedule(talker.gateway.resources, claimed)
        assert len((await talker.request("GET", "/v1/dreams"))["results"]) == 1
