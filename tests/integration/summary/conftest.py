"""A gateway with a small window and a model stand-in; sessions are summarised in the test's own process."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from shared.conversation.summary import queries as summary_queries
from shared.conversation.summary.summary import SessionSummary
from shared.foundation import config
from tests.agent import Agent, Json, find_block
from tests.conftest import Gateway
from tests.draining import drain, make_due, running_without_jobs
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call

SIZE, STEP, MOST = 6, 2, 10
WINDOW = {"context_window_turns": SIZE, "context_window_step": STEP, "window_max_turns": MOST}


def conversation_of(call: Call) -> Json:
    """Return what a call asks to summarise."""
    return dict(json.loads(call.body["messages"][-1]["content"]))


def joined(call: Call) -> str:
    """Return a summary that has every turn as it was shown, in order: what is lost or doubled can be seen."""
    conversation = conversation_of(call)
    texts = [conversation.get("summary_so_far"), *(turn["content"] for turn in conversation["turns"])]
    return " ".join(filter(None, texts))


def summarize(call: Call) -> str:
    """Return this summary in the form that is asked for."""
    return json.dumps({"summary": joined(call)})


@dataclass(frozen=True)
class Talk:
    """One session of a gateway, whose turns are `#1`, `#2` and so on."""

    gateway: Gateway
    agent: Agent
    session: str

    @property
    def turns(self) -> str:
        """The path of the turns."""
        return f"/v1/sessions/{self.session}/turns"

    async def say(self, first: int, last: int) -> None:
        """Append the turns of these numbers."""
        for number in range(first, last + 1):
            await self.agent.append_turn(self.session, f"#{number}")

    async def note(self, content: str) -> None:
        """Write a snippet into the scratchpad."""
        path = f"/v1/sessions/{self.session}/scratchpad"
        await self.agent.request("POST", path, status=201, json={"content": content})

    async def context(self) -> Json:
        """Build a context that changes nothing."""
        return await self.agent.context(self.session, "now?", record_turn=False)

    async def shown(self) -> tuple[str | None, str, list[str]]:
        """Return the summary that a context shows, the turns that it replays, and what it lacks."""
        context = await self.context()
        block = find_block(context, "summary")
        contents = [message["content"] for message in context["messages"][:-1]]
        replayed = " ".join(content for content in contents if content.startswith("#"))
        return (_text_of(block) if block else None), replayed, context["degraded"]

    async def drain(self) -> None:
        """Process what is due, and what waits for another attempt."""
        await make_due(self.gateway.resources)
        await drain(self.gateway.resources)

    async def stored(self) -> SessionSummary | None:
        """Return the summary as it is stored."""
        async with self.gateway.resources.postgres.for_tenant(self.gateway.tenant) as tx:
            return await summary_queries.find(tx, self.session)

    async def pending(self) -> int:
        """Return the number of summaries that are due."""
        return int((await self.agent.request("GET", "/v1/status"))["pending"]["summary"])


def numbers(first: int, last: int) -> str:
    """Return the texts of these turns."""
    return " ".join(f"#{number}" for number in range(first, last + 1))


def _text_of(block: dict[str, Any]) -> str:
    """Return the lines of a block without its header and its fence."""
    return "\n".join(line.strip() for line in block["text"].splitlines()[2:-1])


@pytest.fixture
def changes() -> dict[str, Any]:
    """Return what a test changes in the settings."""
    return {}


@pytest.fixture
async def talk(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str, changes: dict[str, Any]
) -> AsyncIterator[Talk]:
    """Open a session of a gateway with a model that joins what it is shown."""
    models.chat_default = Reply(summarize)
    values = {"llm_base_url": models.url, "llm_model": "m", "job_backoff": 0.01, **WINDOW, **changes}
    async with running_without_jobs(make_settings(**values), tenant) as gateway:
        agent = Agent(gateway.client, tenant)
        yield Talk(gateway, agent, await agent.session(id="talk", user_id="ada"))
