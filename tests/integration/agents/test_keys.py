"""SE8: an agent's keys work like those of a session, are durable, and have their own limit."""

from http import HTTPStatus

from sqlalchemy import text

from tests.agent import Agent
from tests.badinput import problem
from tests.conftest import Gateway
from tests.integration.agents.conftest import PROFILE

KEYS = f"{PROFILE}/kv"


async def list_keys(agent: Agent) -> list[str]:
    return [result["key"] for result in (await agent.request("GET", KEYS))["results"]]


async def test_a_key_is_written_read_listed_and_deleted(agent: Agent) -> None:
    entry = await agent.request("PUT", f"{KEYS}/plan", json={"value": {"type": "float", "value": "NaN"}})
    assert (entry["key"], entry["type"]) == ("plan", "float")
    assert await agent.request("GET", f"{KEYS}/plan") == entry
    assert (await agent.request("GET", KEYS))["results"] == [entry]
    assert await agent.request("DELETE", f"{KEYS}/plan") == {"key": "plan", "deleted": True}
    assert await agent.request("DELETE", f"{KEYS}/plan") == {"key": "plan", "deleted": False}
    await agent.request("GET", f"{KEYS}/plan", status=HTTPStatus.NOT_FOUND)


async def test_over_the_agents_own_limit_the_keys_written_least_recently_are_deleted(agent: Agent) -> None:
    for n in range(5):
        await agent.request("PUT", f"{KEYS}/k{n}", json={"value": n})
    await agent.request("PUT", f"{KEYS}/k0", json={"value": "again"})
    await agent.request("PUT", f"{KEYS}/k5", json={"value": 5})
    assert await list_keys(agent) == ["k2", "k3", "k4", "k0", "k5"]


async def test_an_agent_keeps_five_hundred_keys_by_default(gateway: Gateway) -> None:
    assert gateway.resources.settings.agent_max_keys == 500


async def test_an_agents_keys_are_its_own_and_outlive_its_sessions(
    small_gateway: Gateway, agent: Agent
) -> None:
    await agent.request("PUT", PROFILE, json={"store_types": ["tmp"]})
    session = await agent.session(id="support", agent_id="support")
    await agent.request("PUT", f"{KEYS}/k", json={"value": "the agent's"})
    await agent.request("GET", f"/v1/sessions/{session}/kv/k", status=HTTPStatus.NOT_FOUND)
    await agent.request("GET", "/v1/agents/other/kv/k", status=HTTPStatus.NOT_FOUND)
    await agent.request("DELETE", f"/v1/sessions/{session}")
    assert (await agent.request("GET", f"{KEYS}/k"))["value"] == "the agent's"
    async with small_gateway.resources.postgres.for_tenant(small_gateway.tenant) as tx:
        rows = await tx.execute(text("SELECT owner_kind, owner_id, key FROM state_key"))
        assert [tuple(row) for row in rows] == [("agent", "support", "k")]


async def test_a_key_or_value_that_breaks_a_rule_is_refused_and_not_stored(agent: Agent) -> None:
    for key, value, field in (
        ("x" * 257, 1, "key"),
        ("k", {"type": "colour"}, "value"),
        ("k", 2**63, "value"),
    ):
        assert problem.names_violation(await agent.client.put(f"{KEYS}/{key}", json={"value": value}), field)
    assert await list_keys(agent) == []
