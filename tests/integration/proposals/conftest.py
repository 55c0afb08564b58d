"""Requests on proposals, and proposals as passes hold them."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from shared.foundation import config
from shared.foundation.origin import Origin, Trust
from shared.foundation.scope import Scope
from shared.memory.longterm import new_rows
from shared.memory.longterm.memory import MemoryDraft, Source
from shared.memory.proposals import hold as hold_proposals
from shared.memory.proposals.hold import Held
from shared.memory.proposals.proposal import ProposalDraft, ProposalKind
from tests.agent import Agent, Json, random_word
from tests.conftest import Gateway, running_gateway

URL = "/v1/proposals"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture
def gateway(shared_gateway: Gateway) -> Gateway:
    return shared_gateway


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    return Agent(gateway.client, gateway.tenant)


@pytest.fixture
def scope() -> Json:
    """An agent of its own for each test, and a user."""
    return {"agent_id": random_word(), "user_id": random_word()}


async def say(agent: Agent, scope: Json, content: str = "I moved to Rome.") -> tuple[str, int]:
    """Say something in a new session of a scope, and return the turn."""
    session = await agent.session(**scope)
    return session, await agent.append_turn(session, content, role="user")


def fact(
    turn: tuple[str, int],
    content: str = "Ada lives in Rome.",
    *more: tuple[str, int],
    closes: str | None = None,
    signs: tuple[str, ...] = (),
    **fields: Any,
) -> ProposalDraft:
    """Return a fact that rests on turns."""
    turns = (turn, *more)
    sources = [Source(session_id=session, seq=seq, role="user") for session, seq in turns]
    row = new_rows.row_from_learned_draft(
        MemoryDraft(content=content, **fields), Origin.derived([Trust.USER]), sources
    )
    return ProposalDraft(ProposalKind.FACT, row, evidence_turns=turns, closes=closes, signs=signs)


async def hold(gateway: Gateway, scope: Json, *drafts: ProposalDraft, max_held: int = 1000) -> Held:
    """Hold drafts, as a pass does."""
    resources = gateway.resources
    settings = resources.settings.model_copy(update={"proposal_max_per_scope": max_held})
    async with resources.transaction(gateway.tenant) as tx:
        return await hold_proposals.hold(tx, settings, Scope(gateway.tenant, **scope), drafts)


async def hold_one(gateway: Gateway, scope: Json, draft: ProposalDraft) -> str:
    """Hold a draft, and return the id of the proposal."""
    [proposal_id] = (await hold(gateway, scope, draft)).proposal_ids
    return proposal_id


async def listed(agent: Agent, scope: Json, **query: Any) -> list[Json]:
    """List proposals of a scope."""
    return list((await agent.request("GET", URL, params=scope | query))["results"])


async def decide(
    agent: Agent, proposal_id: str, action: str = "approve", *, status: int = HTTPStatus.OK, **body: Any
) -> Json:
    """Decide about a proposal, and return the response."""
    path = f"{URL}/{proposal_id}"
    return dict(await agent.request("POST", path, json={"action": action, **body}, status=status))


async def contents(agent: Agent, scope: Json) -> list[str]:
    """Return the texts of the live memories of a scope."""
    return [
        memory["content"] for memory in (await agent.request("GET", "/v1/memories", params=scope))["results"]
    ]
