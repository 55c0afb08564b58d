"""MM5: what is about money, security or credentials applies once the user has agreed, whoever wrote it."""

from typing import Any

from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.preferences.conftest import URL, put, resolve, rule, slots

PAYING = rule("auto_pay", "every invoice", flow="office")


async def state(agent: Agent, key: str, **scope: Any) -> str:
    return str((await agent.request("GET", f"{URL}/{key}", params=scope))["state"])


async def test_what_another_key_writes_about_money_waits_for_the_users(
    agent: Agent, gateway: Gateway, scope: Json
) -> None:
    written = await put(agent, "paying", PAYING, **scope)
    assert (written["state"], written["requires_user_permission"]) == ("awaiting_permission", True)
    await put(agent, "tone", rule("tone", "kind", ("paying",), flow="office"), **scope)
    assert await slots(agent, flow="office", **scope) == {"tone": "kind"}
    async with await gateway.new_client(user_id="ada") as client:
        granted = await put(Agent(client, gateway.tenant), "paying", PAYING, agent_id=scope["agent_id"])
    assert (granted["state"], granted["requires_user_permission"]) == ("active", True)
    assert await slots(agent, flow="office", **scope) == {"tone": "kind", "auto_pay": "every invoice"}


async def test_a_permission_is_for_the_rule_that_the_user_saw(
    agent: Agent, gateway: Gateway, scope: Json
) -> None:
    async with await gateway.new_client(user_id="ada") as client:
        await put(Agent(client, gateway.tenant), "habit", PAYING, agent_id=scope["agent_id"])
    repeated = await put(agent, "habit", PAYING, **scope)
    assert repeated["state"] == "active", "nothing was changed"
    more = rule("auto_pay", "every invoice and every bill", flow="office")
    assert (await put(agent, "habit", more, **scope))["state"] == "awaiting_permission"
    plain = await put(agent, "habit", rule("tone", "kind", flow="office"), **scope)
    assert (plain["state"], plain["requires_user_permission"]) == ("awaiting_permission", True)
    assert (await resolve(agent, flow="office", **scope))["applies"] == []


async def test_a_rule_of_an_agent_about_money_is_allowed_by_a_key_that_is_bound_to_nobody(
    agent: Agent, gateway: Gateway, scope: Json
) -> None:
    name = scope["agent_id"]
    async with await gateway.new_client(agent_id=name) as client:
        written = await put(Agent(client, gateway.tenant), "paying", PAYING)
    assert written["state"] == "awaiting_permission"
    assert await slots(agent, flow="office", **scope) == {}
    assert (await put(agent, "paying", PAYING, agent_id=name))["state"] == "active"
    assert await slots(agent, flow="office", **scope) == {"auto_pay": "every invoice"}
