"""Requests on skills."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from shared.foundation import config
from tests.agent import Agent, Json
from tests.conftest import Gateway, running_gateway

URL = "/v1/skills"
BREAD = {"content": "# Bread\n\nKnead the dough.", "summary": "How to bake bread."}
REPLAYED = 4


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    """A gateway with few versions of a skill and a short window that moves turn by turn."""
    settings = make_settings(
        skill_max_versions=3,
        context_window_turns=REPLAYED + 1,
        window_max_turns=REPLAYED + 1,
        context_window_step=1,
    )
    async with running_gateway(settings, f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture
def gateway(shared_gateway: Gateway) -> Gateway:
    return shared_gateway


def new_scope() -> Json:
    """Return an agent that no other test has, with a user."""
    return {"agent_id": f"a-{uuid4().hex[:8]}", "user_id": "ada"}


async def put(agent: Agent, name: str, *, status: int = HTTPStatus.OK, **fields: Any) -> Json:
    """Store a skill and return it."""
    return dict(await agent.request("PUT", f"{URL}/{name}", json=BREAD | fields, status=status))


async def get(agent: Agent, name: str, *, status: int = HTTPStatus.OK, **query: str) -> Json:
    """Read a skill."""
    return dict(await agent.request("GET", f"{URL}/{name}", params=query, status=status))


async def load(agent: Agent, name: str, *, session: str | None = None, **scope: str) -> Json:
    """Load a skill as an agent does, by the tool, and return the answer."""
    chosen = {"loci-agent": scope.get("agent_id"), "loci-user": scope.get("user_id"), "loci-session": session}
    headers = {name: value for name, value in chosen.items() if value is not None}
    body = {"arguments": {"name": name}}
    return dict(await agent.request("POST", "/v1/tools/skill_load", json=body, headers=headers))


async def found_names(agent: Agent, query: str, **more: Any) -> list[str]:
    """Search skills and return their names, best first."""
    found = await agent.request("POST", f"{URL}/search", json={"query": query, **more})
    return [skill["name"] for skill in found["results"]]


async def import_zip(agent: Agent, archive: bytes, *, status: int = HTTPStatus.CREATED, **query: str) -> Json:
    """Import an archive and return the response."""
    path = f"{URL}/import"
    return dict(await agent.request("POST", path, content=archive, params=query, status=status))
