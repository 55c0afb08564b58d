"""MM4: what is looked up for one answer has a bound, however many preferences are related to each other."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import insert

from shared.memory.preferences import resolve as preference_resolve
from shared.memory.preferences.resolve import MAX_OF_FLOW
from shared.memory.preferences.table import preference
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.preferences.conftest import put, resolve, rule, slots


async def fill(gateway: Gateway, scope: Json, rows: list[Json]) -> None:
    """Store preferences, given as {key, flow, related}, each with a slot of its own."""
    common = {"tenant": gateway.tenant, **scope, "value": 1, "origin": "explicit", "version": 1}
    columns = [{**common, "id": row["key"], "slot": row["key"], "search_terms": "", **row} for row in rows]
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(insert(preference), columns)


async def test_relations_reach_up_to_a_number_per_link_from_the_most_specific_on(
    agent: Agent, gateway: Gateway, scope: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preference_resolve, "MAX_RELATED_PER_LINK", 256)

    def named(prefix: str, flow: str, related: list[str]) -> Json:
        return {"key": f"{scope['agent_id']}/{prefix}", "flow": flow, "related": related}

    leaves = [named(f"leaf-{number}", "other", []) for number in range(320)]
    keys = [leaf["key"] for leaf in leaves]
    await fill(gateway, scope, leaves)
    for number in range(5):
        await put(
            agent, f"p{number}", rule(f"s{number}", 1, tuple(keys[64 * number :][:64]), flow="f"), **scope
        )
    answer = await resolve(agent, flow="f", **scope)
    assert answer["degraded"] == ["related"]
    applied = [item["key"] for item in answer["applies"]]
    assert len(applied) == 5 + 256
    # The last one that was written goes before the others, and so does what it names.
    assert {*keys[256:]} <= {*applied}
    assert not {*keys[:64]} & {*applied}


async def test_ten_thousand_related_to_one_reach_it_once(agent: Agent, gateway: Gateway, scope: Json) -> None:
    hub = f"{scope['agent_id']}/one"
    rows = [
        {"key": f"{scope['agent_id']}/{number}", "flow": "f", "related": [hub]} for number in range(10_000)
    ]
    await fill(gateway, scope, [{"key": hub, "flow": "other", "related": [rows[0]["key"]]}, *rows])
    answer = await resolve(agent, flow="f", **scope)
    assert len(answer["applies"]) == MAX_OF_FLOW + 2
    assert sum(item["key"] == hub for item in answer["applies"]) == 1
    assert (answer["stages"], answer["degraded"]) == (["flow", "related"], ["flow"])


async def test_whoever_names_itself_or_who_named_it_ends_there(agent: Agent, scope: Json) -> None:
    await put(agent, "a", rule("a", 1, ("a", "b"), flow="f"), **scope)
    await put(agent, "b", rule("b", 2, ("a", "c", "b"), flow="g"), **scope)
    await put(agent, "c", rule("c", 3, ("a", "b", "d"), flow="g"), **scope)
    await put(agent, "d", rule("d", 4, flow="g"), **scope)
    assert await slots(agent, flow="f", **scope) == {"a": 1, "b": 2, "c": 3}


async def test_values_of_other_json_types_are_kept_and_contradict_each_other(
    agent: Agent, scope: Json
) -> None:
    for key, value in (("number", 1), ("float", 1.0), ("flag", True)):
        stored = await put(agent, key, rule("level", value, flow="f"), **scope)
        assert type(stored["effect"]["value"]) is type(value)
    answer = await resolve(agent, flow="f", **scope)
    [conflict] = answer["conflicts"]
    values: list[Any] = [item["effect"]["value"] for item in [*answer["applies"], *conflict["overruled"]]]
    assert [(type(value), value) for value in values] == [(bool, True), (float, 1.0), (int, 1)]


async def test_an_answer_is_of_one_moment_while_a_rule_is_rewritten(agent: Agent, scope: Json) -> None:
    """Whoever asks gets one of the rules that stood under the key, and each key once."""

    async def write(number: int) -> None:
        body = rule("depth", number, flow="f", description="The board meets.")
        await put(agent, "depth", body, **scope)

    async def ask(number: int) -> list[tuple[str, int]]:
        more: Json = {"situation": "the board meets"} if number % 2 else {}
        answer = await resolve(agent, flow="f", **more, **scope)
        assert answer["conflicts"] == []
        return [(item["key"], item["effect"]["value"]) for item in answer["applies"]]

    await write(0)
    answers, _ = await asyncio.gather(
        asyncio.gather(*(ask(number) for number in range(30))),
        asyncio.gather(*(write(number) for number in range(1, 20))),
    )
    assert all(len(answer) == 1 and answer[0][0] == "depth" for answer in answers)
