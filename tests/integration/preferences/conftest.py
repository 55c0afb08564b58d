"""Requests on preferences, and a gateway for each file of tests."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from shared.foundation import config
from tests.agent import Agent, Json, random_word
from tests.conftest import Gateway, running_gateway
from tests.draining import running_without_jobs
from tests.standins.models import ModelServer

URL = "/v1/preferences"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture
def gateway(shared_gateway: Gateway) -> Gateway:
    return shared_gateway


@pytest.fixture
async def dreaming(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a language model, for dreams."""
    settings = make_settings(llm_base_url=models.url, llm_model="m", job_backoff=0.01)
    async with running_without_jobs(settings, tenant) as served:
        yield served


@pytest.fixture
def scope() -> Json:
    """An agent of its own for each test, and a user."""
    return {"agent_id": random_word(), "user_id": "ada"}


def rule(slot: str, value: Any, related: tuple[str, ...] = (), **condition: str) -> Json:
    """Return the body of a preference that gives a slot a value."""
    return {"condition": condition, "effect": {"slot": slot, "value": value}, "related": list(related)}


async def put(agent: Agent, key: str, body: Json, status: int = 200, **more: Any) -> Json:
    """Store a preference and return it."""
    named = [name for name in ("if_match", "if_none_match") if name in more]
    headers = {name.replace("_", "-"): more.pop(name) for name in named}
    path = f"{URL}/{key}"
    return dict(await agent.request("PUT", path, json={**body, **more}, headers=headers, status=status))


async def resolve(agent: Agent, status: int = 200, **body: Any) -> Json:
    """Resolve which preferences apply."""
    return dict(await agent.request("POST", f"{URL}/resolve", json=body, status=status))


async def slots(agent: Agent, **body: Any) -> Json:
    """Return the values of slots that apply."""
    effects = [item["effect"] for item in (await resolve(agent, **body))["applies"]]
    return {effect["slot"]: effect["value"] for effect in effects if "slot" in effect}
