"""A gateway with a model stand-in, and dream runs that the test's own process executes."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs import unread_turn_queries
from shared.dreams.runs.dream_run import Run
from shared.foundation import config
from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass
from shared.platform.resources import Resources
from tests import run_pass
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.draining import drain, make_due, running_without_jobs
from tests.integration.dreams.evaluations import GOOD
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

Active = Callable[..., Any]
Serve = Callable[..., Any]
MEMORIES = (
    {"content": "Ada lives in Lyon at 12 Rue Neuve.", "category": "user/home", "tags": ["home"]},
    {"content": "Ada's home is 12 Rue Neuve in Lyon.", "category": "user/home", "tags": ["address"]},
    {"content": "Ada is on the tram right now.", "category": "general"},
    {"content": "The invoice run starts on the 3rd of each month.", "category": "project-context/billing"},
    {"content": "Ada plays the oboe in the Tuesday orchestra.", "category": "user/hobbies"},
)


@pytest.fixture
async def model_gateway(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a model. The tests save memories without enrichment, so only dreams use it."""
    settings = make_settings(llm_base_url=models.url, llm_model="m", job_backoff=0.01)
    async with running_without_jobs(settings, tenant) as served:
        yield served


async def save_memories(model_gateway: Gateway, **more: Any) -> list[str]:
    """Save the memories and return their ids."""
    batch = [{**fields, "enrich": False, **more} for fields in MEMORIES]
    response = await model_gateway.client.post("/v1/memories/batch", json={"memories": batch})
    return [memory["id"] for memory in response.json()["results"]]


def merge_reply(ids: list[str]) -> Reply:
    """Return a reply that merges the first two memories and deletes the third one as ephemeral."""
    merged = {
        "content": "Ada lives in Lyon; her home is at 12 Rue Neuve.",
        "category": "user/home",
        "tags": ["home"],
        "sourceIds": ids[:2],
    }
    return Reply(json.dumps({"toDelete": [{"id": ids[2], "reason": "ephemeral"}], "toSave": [merged]}))


async def run_dream(model_gateway: Gateway, **body: Any) -> dict[str, Any]:
    """Start a run, execute it, and return it."""
    response = await model_gateway.client.post("/v1/dreams", json=body)
    assert response.status_code == 201, response.text
    run_id = response.json()["id"]
    await execute_run(model_gateway.resources, model_gateway.tenant, run_id)
    return dict((await model_gateway.client.get(f"/v1/dreams/{run_id}")).json())


async def execute_run(resources: Resources, tenant: str, run_id: str, max_passes: int = 60) -> None:
    """Execute one pass after the other until the run has ended."""
    for _ in range(max_passes):
        run = await load_run(resources, tenant, run_id)
        if run.next_pass is None:
            await drain(resources)
            return
        await make_due(resources)
        await run_pass.run_pass(resources, tenant, run_id, run.next_pass.name)
    raise AssertionError("the run does not end")


async def load_run(resources: Resources, tenant: str, run_id: str) -> Run:
    async with resources.postgres.for_tenant(tenant) as tx:
        run = await dream_queries.get(tx, run_id)
    assert run is not None
    return run


async def live(model_gateway: Gateway, user_id: str | None = None) -> dict[str, str]:
    """Return the content of every live memory that a user sees by id."""
    params: dict[str, str | int] = {"limit": 100} | ({} if user_id is None else {"user_id": user_id})
    response = await model_gateway.client.get("/v1/memories", params=params)
    return {memory["id"]: memory["content"] for memory in response.json()["results"]}


async def create_session(model_gateway: Gateway, *contents: str) -> str:
    """Create a session with these turns of a user and return its id."""
    session_id = (await model_gateway.client.post("/v1/sessions", json={})).json()["id"]
    await add_turns(model_gateway, session_id, *contents)
    return str(session_id)


async def add_turns(model_gateway: Gateway, session_id: str, *contents: str) -> None:
    """Append turns of a user."""
    turns = [{"role": "user", "content": content} for content in contents]
    path = f"/v1/sessions/{session_id}/turns/batch"
    response = await model_gateway.client.post(path, json={"turns": turns})
    assert response.status_code == 201, response.text


async def list_unread(model_gateway: Gateway, name: DreamPass) -> list[str]:
    """Return the contents of the turns that a pass has not read."""
    scope = Scope(model_gateway.tenant)
    async with model_gateway.resources.postgres.for_tenant(model_gateway.tenant) as tx:
        turns, _ = await unread_turn_queries.list_oldest_unread(tx, scope, name, 1000)
    return [turn.content for turn in turns]


@pytest.fixture
def active(make_settings: Callable[..., config.Settings], database: dict[str, str], tenant: str) -> Active:
    """Return a gateway with these settings and one scope with a turn."""

    @asynccontextmanager
    async def make(**changes: Any) -> AsyncIterator[Gateway]:
        async with running_gateway(make_settings(**database, **changes), tenant) as model_gateway:
            agent = Agent(model_gateway.client, tenant)
            await agent.append_turn(await agent.session(), "The lighthouse is white.", role="user")
            yield model_gateway

    return make


@pytest.fixture
def serve(
    make_settings: Callable[..., config.Settings], database: dict[str, str], models: ModelServer, tenant: str
) -> Serve:
    """Return a gateway with a model that finds every session good. The windows of idle sessions last."""
    models.chat_default = Reply(GOOD)
    common = {"llm_base_url": models.url, "llm_model": "m", "job_backoff": 0.01, "window_ttl": 10**8}

    @asynccontextmanager
    async def make(**changes: Any) -> AsyncIterator[Gateway]:
        settings = make_settings(**database, **common, **changes)
        async with running_gateway(settings, tenant) as served:
            yield served

    return make
