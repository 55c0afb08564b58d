"""A gateway whose model is a stand-in that proposes facts, and runs that the test's own process executes."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from shared.foundation import config
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.draining import running_without_jobs
from tests.integration.dreams.conftest import execute_run
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call

MARCH, JUNE = "2026-03-02T18:00:00Z", "2026-06-08T18:00:00Z"


@pytest.fixture
async def mining_gateway(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a model that finds no fact, until the test says what it proposes."""
    models.chat_default = propose()
    settings = make_settings(llm_base_url=models.url, llm_model="m", job_backoff=0.01)
    async with running_without_jobs(settings, tenant) as served:
        yield served


@pytest.fixture
def talker(mining_gateway: Gateway) -> "Talker":
    return Talker(mining_gateway)


def propose(*facts: Json) -> Reply:
    """Return a reply that proposes these facts."""
    return Reply(json.dumps({"facts": list(facts)}))


def fact(content: str, *sources: tuple[str, int], **fields: Any) -> Json:
    """Return a fact as a model writes it."""
    return {"content": content, "sources": [list(source) for source in sources], **fields}


def shown_lines(call: Call) -> list[str]:
    """Return what the model was shown, without its directive: known facts first."""
    return call.prompt.rpartition("Known facts:\n")[2].splitlines()


class Talker(Agent):
    """An agent that talks with the user ada, and has what she said mined."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway.client, gateway.tenant)
        self.gateway = gateway

    async def talk(self, *turns: str, at: str | None = None, **session: Any) -> str:
        """Open a session with these turns, by turns of the user and of the assistant, and return its id."""
        session_id = await self.session(**({"user_id": "ada"} | session))
        await self.say(session_id, *turns, at=at)
        return session_id

    async def say(self, session_id: str, *turns: str, at: str | None = None) -> None:
        """Append turns, the first of them the user's."""
        bodies = [
            {"role": ("user", "assistant")[position % 2], "content": content, "created_at": at}
            for position, content in enumerate(turns)
        ]
        path = f"/v1/sessions/{session_id}/turns/batch"
        await self.request("POST", path, json={"turns": bodies}, status=201)

    async def mine(self, session_id: str) -> Json:
        """Mine a session and return the run when it has ended."""
        run = await self.request("POST", f"/v1/sessions/{session_id}/mine", status=202)
        return await self.execute(run)

    async def execute(self, run: Json) -> Json:
        """Execute a run and return it."""
        await execute_run(self.gateway.resources, self.tenant, run["id"])
        return dict(await self.request("GET", f"/v1/dreams/{run['id']}"))

    async def facts(self, **parameters: Any) -> dict[str, Json]:
        """Return ada's live and valid memories by content."""
        query = {"user_id": "ada", "limit": 100} | parameters
        listed = await self.request("GET", "/v1/memories", params=query)
        return {memory["content"]: memory for memory in listed["results"]}

    async def diff(self, run: Json) -> list[Json]:
        """Return what a run has changed."""
        return list((await self.request("GET", f"/v1/dreams/{run['id']}/diff"))["results"])


def codes(run: Json) -> list[str]:
    """Return why items of a run's plan were rejected."""
    [mined] = run["passes"]
    return [rejection["code"] for rejection in mined["rejections"]]
