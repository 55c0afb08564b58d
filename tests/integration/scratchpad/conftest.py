"""Requests on scratchpads, reports and the business context."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from shared.foundation.scope import Caller
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.draining import running_without_jobs
from tests.standins.models import ModelServer

BUSINESS_CONTEXT = "/v1/business-context"


@pytest.fixture
async def judged(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a language model."""
    settings = make_settings(llm_base_url=models.url, llm_model="m", llm_max_tokens=500, job_backoff=0.01)
    async with running_without_jobs(settings, tenant) as served:
        yield served


async def note(agent: Agent, session: str, content: str, *, times: int = 1, **options: Any) -> Json:
    """Write a snippet so many times, and return it."""
    path, body = f"/v1/sessions/{session}/scratchpad", {"content": content}
    for _ in range(times):
        snippet = await agent.request("POST", path, json=body, status=HTTPStatus.CREATED, **options)
    return dict(snippet)


async def snippets(agent: Agent, session: str, **query: str) -> list[Json]:
    """Read the snippets of a session."""
    path = f"/v1/sessions/{session}/scratchpad"
    return list((await agent.request("GET", path, params=query))["results"])


async def promote(agent: Agent, session: str, *, status: int = HTTPStatus.OK, **body: Any) -> Json:
    """Promote snippets, and return the promotion."""
    path = f"/v1/sessions/{session}/scratchpad/promote"
    return dict(await agent.request("POST", path, json=body, status=status))


async def report(agent: Agent, session: str, title: str = "Found", content: str = "It is so.") -> Json:
    """Save a report."""
    body, path = {"title": title, "content": content}, f"/v1/sessions/{session}/report"
    return dict(await agent.request("POST", path, json=body, status=HTTPStatus.CREATED))


async def last_promotion(agent: Agent, session: str) -> Json:
    """Return the last promotion of a session."""
    promotions = await agent.request("GET", f"/v1/sessions/{session}/scratchpad/promotions")
    return dict(promotions["results"][0])


def outcomes(promotion: Json) -> dict[str, str]:
    """Return what became of each snippet, by its id."""
    return {result["id"]: result["outcome"] for result in promotion["results"]}


async def promoted_memories(agent: Agent, user: str) -> list[Json]:
    """Return the memories below `user-preferences` of a user."""
    query = {"user_id": user, "category": "user-preferences"}
    return list((await agent.request("GET", "/v1/memories", params=query))["results"])


async def business_context(agent: Agent) -> Json:
    """Read the business context."""
    return dict(await agent.request("GET", BUSINESS_CONTEXT))


def caller_of(gateway: Gateway) -> Caller:
    return Caller("key", gateway.tenant, frozenset({"read", "write"}))
