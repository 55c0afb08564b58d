"""MM8: nothing leaves a tenant without its consent, five tenants have to share it, and it is withdrawn."""

import asyncio
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import text

from shared.foundation import config
from tests.agent import Agent, Json
from tests.conftest import Gateway, running_gateway
from tests.databases import empty_tables
from tests.integration.playbooks.conftest import QUERY, record
from workers.sweep.sweep import sweep_once

TENANTS = [f"tenant-{number}" for number in range(6)]
PATTERN = {
    "flow_dact": "book_flight",
    "tool_ids": ["flights.search", "flights.book"],
    "outcome": "completed",
    "count": 5,
}


@pytest.fixture
async def apart(
    make_settings: Callable[..., config.Settings], database: dict[str, str]
) -> AsyncIterator[Gateway]:
    """A gateway in whose database nobody has a playbook or has consented."""
    await empty_tables(database["postgres_url"], "playbook", "pattern_consent")
    async with running_gateway(make_settings(**database), TENANTS[0]) as gateway:
        yield gateway


@pytest.fixture
async def agents(apart: Gateway) -> AsyncIterator[list[Agent]]:
    """Agents of six tenants in that database."""
    clients = [await apart.new_client(tenant) for tenant in TENANTS]
    yield [Agent(client, tenant) for client, tenant in zip(clients, TENANTS, strict=True)]
    for client in clients:
        await client.aclose()


async def consent(agent: Agent, *, given: bool = True) -> Json:
    return dict(await agent.request("PUT", "/v1/patterns/consent", json={"consent": given}))


async def patterns(agent: Agent, **query: Any) -> list[Json]:
    return list((await agent.request("GET", "/v1/patterns", params=query))["results"])


async def test_what_five_consenting_tenants_share_is_shown_to_them_alone(agents: list[Agent]) -> None:
    for number, agent in enumerate(agents):
        user = f"user-{number}"
        await record(agent, user_id=user, slots={"secret": user}, user_query=f"A flight for {user}?")
        await record(agent, user_id=user, outcome="COMPLETED")
    for agent in agents:
        assert await agent.request("GET", "/v1/patterns/consent") == {"consent": False, "since": None}
        assert await patterns(agent) == [], "nothing is shared by default"
    for agent in agents[:4]:
        assert (await consent(agent))["consent"]
    assert [await patterns(agent) for agent in agents] == [[]] * 6, "four are too few"
    await consent(agents[4])
    assert await patterns(agents[0]) == [PATTERN]
    assert await patterns(agents[5]) == [], "who does not share sees nothing"
    await consent(agents[5])
    assert await patterns(agents[5], flow="book_flight") == [PATTERN | {"count": 6}]
    assert await patterns(agents[5], flow="book") == []


async def test_withdrawing_consent_recounts(agents: list[Agent]) -> None:
    for agent in agents:
        await record(agent)
        await consent(agent)
    assert await patterns(agents[0]) == [PATTERN | {"count": 6}]
    await consent(agents[5], given=False)
    assert (await patterns(agents[0]), await patterns(agents[5])) == ([PATTERN], [])
    await consent(agents[4], given=False)
    assert await patterns(agents[0]) == []
    await consent(agents[4])
    assert await patterns(agents[0]) == [PATTERN]


async def test_whoever_counts_beside_a_withdrawal_sees_five_or_nothing(agents: list[Agent]) -> None:
    for agent in agents[:5]:
        await record(agent)
    for given in (True, False, True, False):
        counts: list[list[Json]] = []
        for agent in agents[:4]:
            await consent(agent)
        await asyncio.gather(consent(agents[4], given=given), *[_count(agents[0], counts) for _ in range(6)])
        assert all(count in ([], [PATTERN]) for count in counts)
        assert await patterns(agents[0]) == ([PATTERN] if given else [])


async def _count(agent: Agent, counts: list[list[Json]]) -> None:
    counts.append(await patterns(agent))


async def test_what_was_deleted_or_was_not_promoted_does_not_count(agents: list[Agent]) -> None:
    playbooks = []
    for agent in agents[:5]:
        await consent(agent)
        playbooks.append(await record(agent, user_id="ada"))
        await record(agent, flow_dact="refused", satisfied=False)
        await record(agent, flow_dact="failed", outcome="failure", tool_calls=[])
        await record(agent, flow_dact=f"only-in-{agent.tenant}")
    failed = {"flow_dact": "failed", "tool_ids": [], "outcome": "failure", "count": 5}
    assert await patterns(agents[0]) == [PATTERN, failed]
    first = await agents[0].request("GET", "/v1/patterns", params={"limit": 1})
    assert first["results"] == [PATTERN]
    second = await agents[0].request(
        "GET", "/v1/patterns", params={"limit": 1, "cursor": first["next_cursor"]}
    )
    assert second == {"results": [failed], "next_cursor": None}
    await agents[1].request("DELETE", "/v1/users/ada")
    assert await patterns(agents[0]) == [failed]


async def test_a_playbook_that_nobody_read_after_its_user_went_on_counts_from_the_next_sweep(
    agents: list[Agent], apart: Gateway
) -> None:
    for agent in agents[:5]:
        await consent(agent)
        session = await agent.session()
        await agent.append_turn(session, QUERY, "user")
        await agent.append_turn(session, "It is booked.")
        assert (await record(agent, session_id=session))["reason"] == "waiting"
        await agent.append_turn(session, "And which trains run on Sunday?", "user")
    assert await patterns(agents[0]) == []
    assert (await sweep_once(apart.resources)).settled_playbooks == 5
    assert await patterns(agents[0]) == [PATTERN]


async def test_another_order_of_tools_is_another_pattern(agents: list[Agent]) -> None:
    calls = [{"tool_id": "a"}, {"tool_id": "b"}]
    for number, agent in enumerate(agents):
        await consent(agent)
        await record(agent, tool_calls=calls if number < 3 else calls[::-1])
    assert await patterns(agents[0]) == []


async def test_the_processes_read_no_playbook_of_another_tenant_but_through_the_function(
    agents: list[Agent], apart: Gateway
) -> None:
    """The function is the only way out, and it returns four columns: no text, no parameter and no name."""
    await record(agents[0])
    await consent(agents[0])
    async with apart.resources.postgres.for_tenant(TENANTS[1]) as tx:
        assert await tx.scalar(text("SELECT count(*) FROM playbook")) == 0
        assert await tx.scalar(text("SELECT count(*) FROM pattern_consent")) == 0
        columns = (await tx.execute(text("SELECT * FROM shared_patterns(NULL)"))).keys()
        assert list(columns) == ["flow_dact", "tool_ids", "outcome", "count"]


@pytest.mark.parametrize("rights", [["read", "write"], ["read"]])
async def test_only_admin_consents(gateway: Gateway, rights: list[str]) -> None:
    async with await gateway.new_client(rights=rights) as client:
        response = await client.put("/v1/patterns/consent", json={"consent": True})
    assert response.status_code == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("binding", [{"user_id": "ada"}, {"agent_id": "support"}, {"namespace": "notes"}])
async def test_a_bound_key_consents_for_nobody(gateway: Gateway, binding: dict[str, str]) -> None:
    async with await gateway.new_client(**binding) as client:
        response = await client.put("/v1/patterns/consent", json={"consent": True})
    assert response.status_code == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("name", ["Ada Lovelace", "ada@example.org", "übung", "", "_a", "a\n"])
async def test_no_text_fits_into_the_ids_of_a_pattern(agent: Agent, name: str) -> None:
    unprocessable = HTTPStatus.UNPROCESSABLE_ENTITY
    await record(agent, flow_dact=name, status=unprocessable)
    await record(agent, tool_calls=[{"tool_id": name}], status=unprocessable)
    await record(agent, outcome=name, status=unprocessable)
