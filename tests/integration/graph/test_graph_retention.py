"""LT13 and KG2: what was invalidated 90 days ago is deleted with its names, sources and history."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.foundation import config
from shared.infra.transaction import Transaction
from shared.lifecycle import delete_graph
from tests import state
from tests.agent import Agent, Json
from tests.conftest import Gateway, running_gateway
from tests.integration.dreams.conftest import model_gateway, run_dream  # noqa: F401  (a fixture)
from tests.integration.forgetting.conftest import records_with
from tests.integration.graph.conftest import URL, connect, entities, save_entity, triples
from tests.integration.graph.reviews import merge
from tests.integration.graph.transferred_lines import export, import_lines
from tests.standins.models import ModelServer
from tests.state import StateInspector
from workers.sweep import retention
from workers.sweep.sweep import sweep_once

SECRET = "persimmonia"


@pytest.fixture
def gateway(model_gateway: Gateway) -> Gateway:  # noqa: F811
    return model_gateway


async def _backdate(inspector: StateInspector, table: str, id_: str, days: float) -> None:
    await inspector.postgres.execute(
        f"UPDATE {table} SET expired_at = expired_at - $2::interval WHERE id = $1",  # noqa: S608
        id_,
        timedelta(days=days),
    )


async def _invalidate(agent: Agent, triple_id: str) -> None:
    body = {"reason": f"no {SECRET}"}
    await agent.request("POST", f"{URL}/triples/{triple_id}/invalidate", json=body)


async def _purge(gateway: Gateway) -> int:
    return (await retention.delete_old_rows(gateway.resources, gateway.tenant))["graph"]


async def test_an_invalidated_triple_is_purged_after_ninety_days_with_its_sources(
    agent: Agent,
    gateway: Gateway,
    inspector: StateInspector,
) -> None:
    source = {"session_id": "talk", "seq": 1}
    old, young, live = [
        await connect(agent, "Alice", "likes", f"Song {number}", fact=f"{SECRET} {number}", source=source)
        for number in range(3)
    ]
    for triple in (old, young):
        await _invalidate(agent, triple["id"])
    await _backdate(inspector, "graph_triple", old["id"], 90.01)
    await _backdate(inspector, "graph_triple", young["id"], 89.99)
    assert await _purge(gateway) == 1
    assert {item["id"] for item in await triples(agent, validity="any")} == {young["id"], live["id"]}
    assert await records_with(inspector, gateway, f"{SECRET} 0") == []
    sources = await inspector.postgres.fetch(
        "SELECT triple_id FROM graph_source WHERE tenant = $1 AND triple_id IS NOT NULL", gateway.tenant
    )
    assert {row["triple_id"] for row in sources} == {young["id"], live["id"]}
    assert await _purge(gateway) == 0
    await connect(agent, "Alice", "likes", "Song 0")
    assert len(await triples(agent)) == 2


async def test_a_purged_entity_goes_with_names_aliases_triples_sources_and_what_runs_keep_of_it(
    agent: Agent,
    gateway: Gateway,
    models: ModelServer,
    inspector: StateInspector,
) -> None:
    await save_entity(agent, "RockBot")
    text: Json = {"aliases": [f"{SECRET} alias"], "metadata": {"is": SECRET}}
    dropped = await save_entity(agent, "Rock Bot", **text)
    triple = await connect(
        agent, "Rock Bot", "likes", "Tea", fact=SECRET, source={"session_id": "s", "seq": 1}
    )
    models.chat_default = merge("e1", "e2")
    run = await run_dream(gateway, passes=["consolidate_graph"])
    assert run["passes"][0]["applied"]["entity_invalidated"] == 1
    lines = await export(agent)
    for table, id_ in (("graph_entity", dropped["id"]), ("graph_triple", triple["id"])):
        await _backdate(inspector, table, id_, 91)
    assert await _purge(gateway) == 2
    present = await entities(agent, validity="any")
    assert dropped["id"] not in {entity["id"] for entity in present}
    for table in ("graph_name", "graph_source"):
        statement = f"SELECT count(*) FROM {table} WHERE entity_id = $1"  # noqa: S608
        assert await inspector.postgres.fetchval(statement, dropped["id"]) == 0, table
    kept_of_it = await inspector.postgres.fetch(
        "SELECT before, after FROM dream_graph_change WHERE record_id = ANY ($1)",
        [dropped["id"], triple["id"]],
    )
    assert [tuple(row) for row in kept_of_it] == [(None, None)] * 2
    undone = await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    reasons = {item["entry_id"]: item["reason"] for item in undone["kept"]}
    assert reasons[dropped["id"]] == reasons[triple["id"]] == "it was deleted since"
    report = await import_lines(agent, lines)
    assert report["refused"] == [], "nothing that was purged has a tombstone"


async def test_a_purge_takes_as_many_as_it_may_and_the_oldest_of_other_tenants_stay(
    agent: Agent,
    gateway: Gateway,
    inspector: StateInspector,
) -> None:
    for number in range(4):
        triple = await connect(agent, "Alice", "likes", f"Song {number}")
        await _invalidate(agent, triple["id"])
        await _backdate(inspector, "graph_triple", triple["id"], 100)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        assert await delete_graph.purge_expired(tx, timedelta(days=90), 3) == 3
        of_another = Transaction(tx.connection, "another")
        assert await delete_graph.purge_expired(of_another, timedelta(days=90), 3) == 0
    assert len(await triples(agent, validity="any")) == 1


async def test_a_sweep_counts_what_it_has_deleted_of_the_graph(
    make_settings: Callable[..., config.Settings], tenant: str
) -> None:
    settings = make_settings(apart=True)  # a sweep covers all tenants
    async with running_gateway(settings, tenant) as gateway, state.watching(settings) as inspector:
        agent = Agent(gateway.client, tenant)
        triple = await connect(agent, "Alice", "likes", "Tea")
        await _invalidate(agent, triple["id"])
        await _backdate(inspector, "graph_triple", triple["id"], 91)
        assert (await sweep_once(gateway.resources)).expired_graph == 1
