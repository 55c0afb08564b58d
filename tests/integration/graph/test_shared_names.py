"""KG3: a name that thousands share costs no more than others, and nothing is missed because of it."""

from typing import Any

import pytest
from sqlalchemy import text

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.memory.graph import match_queries, names
from shared.memory.graph.match_queries import MAX_NAMES, MAX_SHARERS
from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.graph.conftest import URL, matched, save_entity
from tests.state import StateInspector

TEXT = "What of the order for the rare thing?"
_ENTITIES = text(
    """
    INSERT INTO graph_entity (tenant, id, agent_id, user_id, name, folded_name, type, aliases, metadata)
    SELECT :tenant, :prefix || lpad(n::text, 6, '0'), :agent_id, CAST(:user_id AS text),
           :prefix || ' ' || n, :prefix || ' ' || n, 'Topic', ARRAY['Order'], '{}'
    FROM generate_series(1, :count) n
    """
)
_NAMES = text(
    """
    INSERT INTO graph_name (tenant, entity_id, agent_id, user_id, folded, key)
    SELECT e.tenant, e.id, e.agent_id, e.user_id, f.folded,
           array_to_string((string_to_array(f.folded, ' '))[1:6], ' ')
    FROM graph_entity e CROSS JOIN LATERAL unnest(ARRAY[e.folded_name, 'order']) AS f (folded)
    WHERE e.tenant = :tenant AND e.name LIKE :prefix || ' %'
    """
)


async def _plant(gateway: Gateway, prefix: str, count: int, **owner: str) -> None:
    """Write entities `PREFIX 1` to `PREFIX COUNT`, of rising ids, which share the alias Order."""
    scope = {"agent_id": "default", "user_id": None, **owner}
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        values = {"tenant": gateway.tenant, "prefix": prefix}
        await tx.execute(_ENTITIES, {**values, **scope, "count": count})
        await tx.execute(_NAMES, values)


async def _set(gateway: Gateway, assignment: str, *ids: str) -> None:
    statement = text(f"UPDATE graph_entity SET {assignment} WHERE tenant = :tenant AND id = ANY (:ids)")  # noqa: S608
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(statement, {"tenant": gateway.tenant, "ids": list(ids)})


async def _found(agent: Agent, message: str = TEXT, **fields: Any) -> list[str]:
    answer = await agent.request("POST", f"{URL}/match", json={"text": message, **fields})
    return [entity["name"] for entity in answer["results"]]


async def test_up_to_a_thousand_entities_of_one_name_come_in_the_order_of_their_last_reference(
    agent: Agent, gateway: Gateway
) -> None:
    await _plant(gateway, "batch", MAX_NAMES)
    await _set(gateway, "last_referenced_at = now() - interval '1 hour'", "batch000001")
    await _set(gateway, "last_referenced_at = now() - interval '2 hours'", "batch000500")
    assert (await _found(agent, "the order"))[:2] == ["batch 1", "batch 500"]


async def test_of_more_the_youngest_are_compared_and_no_other_name_is_missed(
    agent: Agent, gateway: Gateway
) -> None:
    count = MAX_NAMES + 1
    await _plant(gateway, "batch", count)
    await save_entity(agent, "Rare Thing")
    oldest, first, last = "batch000001", f"batch{count - MAX_SHARERS + 1:06}", f"batch{count:06}"
    before_first = f"batch{count - MAX_SHARERS:06}"
    await _set(gateway, "last_referenced_at = now() - interval '1 hour'", oldest, before_first, last)
    await _set(gateway, "last_referenced_at = now() - interval '2 hours'", first)
    found = await _found(agent)
    assert found[:3] == [f"batch {count}", f"batch {count - MAX_SHARERS + 1}", "Rare Thing"]
    assert len(found) == 20
    assert await matched(agent, "batch 1") == ["batch 1"]


async def test_no_name_is_missed_because_many_others_begin_as_it_does_beside_one_that_many_share(
    agent: Agent, gateway: Gateway
) -> None:
    beginning = "the old society of the friends"
    await _plant(gateway, f"{beginning} of bridges", MAX_SHARERS + 1)
    await _plant(gateway, "batch", MAX_NAMES)
    await _set(gateway, "last_referenced_at = now()", f"{beginning} of bridges000001")
    found = await _found(agent, f"The order for {beginning} of bridges 1")
    assert found[0] == f"{beginning} of bridges 1"


async def test_many_of_one_user_or_agent_take_no_place_of_another(agent: Agent, gateway: Gateway) -> None:
    await _plant(gateway, "of ada", MAX_NAMES + 1, user_id="ada")
    await _plant(gateway, "of agent", MAX_NAMES + 1, agent_id="other")
    await _plant(gateway, "common", 3)
    await _plant(gateway, "of bob", 2, user_id="bob")
    common = ["common 1", "common 2", "common 3"]
    assert await matched(agent, TEXT) == common
    assert await matched(agent, TEXT, user_id="bob") == [*common, "of bob 1", "of bob 2"]
    everything = await matched(agent, TEXT, user_id="ada")
    assert {name for name in everything if not name.startswith("of ada")} == set(common)
    assert len(everything) == 20


@pytest.mark.parametrize("count", [30, MAX_NAMES + 1])
async def test_what_has_expired_is_found_at_a_time_before_also_among_many(
    agent: Agent, gateway: Gateway, count: int
) -> None:
    await _plant(gateway, "batch", count)
    over = f"batch{count:06}"
    await _set(gateway, "last_referenced_at = now() + interval '1 hour'", over)
    await _set(gateway, "expired_at = '2026-03-01T00:00:00Z'", over)
    now = await _found(agent, "the order")
    assert (len(now), f"batch {count}" in now) == (20, False)
    assert (await _found(agent, "the order", as_of="2026-02-01T00:00:00Z"))[0] == f"batch {count}"
    assert f"batch {count}" not in await _found(agent, "the order", as_of="2026-04-01T00:00:00Z")


def _scans(plan: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the tables that a plan has read, each with the number of rows that were found there."""
    rows = round(plan.get("Actual Rows", 0) * plan.get("Actual Loops", 1))
    rows += plan.get("Rows Removed by Filter", 0) * plan.get("Actual Loops", 1)
    own = [(plan["Relation Name"], rows)] if "Relation Name" in plan else []
    return own + [scan for part in plan.get("Plans", ()) for scan in _scans(part)]


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
async def test_a_name_that_many_share_reads_no_more_rows_than_the_limits(
    gateway: Gateway, inspector: StateInspector, mode: str
) -> None:
    await _plant(gateway, "batch", 5000)
    await _plant(gateway, "of bob", 5000, user_id="bob")
    await _plant(gateway, "of ada", 5000, user_id="ada")
    await inspector.postgres.execute("ANALYZE graph_name, graph_entity")  # as Postgres does by itself
    words = names.message_words(TEXT)
    values: dict[str, Any] = {"keys": names.possible_keys(words), "words": f" {' '.join(words)} "}
    values |= {"as_of": None, "limit": 20, **prepared.scope_values(Scope(gateway.tenant, "default", "ada"))}
    compiled = prepared._compile(match_queries._MATCH)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        driver = prepared.driver_of(tx.connection)
        # The table of a test is so small that to read all of it would be as good.
        await driver.execute(f"SET LOCAL plan_cache_mode = '{mode}'; SET LOCAL enable_seqscan = off")
        explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {compiled.sql}"
        plan = (await driver.fetchval(explained, *compiled.arguments(values)))[0]["Plan"]
    read = _scans(plan)
    assert {table for table, _ in read} == {"graph_name", "graph_entity"}
    assert sum(rows for table, rows in read if table == "graph_name") <= MAX_NAMES + 1 + 2 * MAX_SHARERS
    assert sum(rows for table, rows in read if table == "graph_entity") <= 2 * MAX_SHARERS
