"""LT13: a tombstone stands for a text, in any spelling, in exactly one scope, until it is removed."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.longterm import tombstones
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import memory_tombstone
from tests.agent import Agent
from tests.conftest import Gateway
from tests.unit.context import builders

TRAINS, FERRIES, TRAMS = "Ada likes trains.", "Bob likes ferries.", "Cy likes trams."
TEXTS = [TRAINS, FERRIES, TRAMS]


@pytest.fixture
async def tx(gateway: Gateway) -> AsyncIterator[Transaction]:
    """A transaction of a tenant with tombstones of two texts, each in a scope of its own."""
    memories = [_memory(gateway, TRAINS, "ada"), _memory(gateway, FERRIES, None)]
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tombstones.add(tx, memories)
        yield tx


def _memory(gateway: Gateway, content: str, user_id: str | None) -> Memory:
    changes = {"tenant": gateway.tenant, "agent_id": "default", "user_id": user_id}
    return builders.entry(content[:3], content).model_copy(update=changes)


async def _deleted(tx: Transaction, scope: Scope) -> set[str]:
    return await tombstones.find_deleted(tx, scope, TEXTS)


async def test_a_deleted_text_is_found_in_its_own_scope_alone(tx: Transaction, gateway: Gateway) -> None:
    tenant = gateway.tenant
    assert await _deleted(tx, Scope(tenant, "default", "ada")) == {TRAINS}
    assert await _deleted(tx, Scope(tenant)) == {FERRIES}
    for other in (Scope(tenant, "default", "bob"), Scope(tenant, "a", "ada"), Scope(tenant, "a")):
        assert await _deleted(tx, other) == set()
    assert await tombstones.find_deleted(tx, Scope(tenant), []) == set()
    spelt = "bob  LIKES\nferries."
    assert await tombstones.find_deleted(tx, Scope(tenant), [spelt]) == {spelt}


async def test_a_tombstone_is_removed_by_its_text_in_its_own_scope(tx: Transaction, gateway: Gateway) -> None:
    adas = Scope(gateway.tenant, "default", "ada")
    await tombstones.remove(tx, Scope(gateway.tenant), TEXTS[:1])
    await tombstones.remove(tx, adas, TEXTS[1:])
    assert await _deleted(tx, adas) == {TRAINS}
    assert await _deleted(tx, Scope(gateway.tenant)) == {FERRIES}
    await tombstones.remove(tx, adas, TEXTS)
    assert await _deleted(tx, adas) == set()


async def test_a_tombstone_names_its_memory_and_holds_no_text(tx: Transaction, gateway: Gateway) -> None:
    await tombstones.add(tx, [_memory(gateway, TRAINS, "ada")])
    where = (memory_tombstone.c.tenant == gateway.tenant, memory_tombstone.c.user_id == "ada")
    (row,) = await tx.execute(select(memory_tombstone).where(*where))
    assert row.memory_id == TRAINS[:3], "the second one adds nothing"
    assert TRAINS.encode() not in row.digest


async def test_a_deleted_memory_leaves_a_tombstone_until_it_is_saved_again(
    agent: Agent, gateway: Gateway
) -> None:
    memory = await agent.save(TRAINS)
    await agent.request("DELETE", f"/v1/memories/{memory['id']}")
    postgres = gateway.resources.postgres
    async with postgres.for_tenant(gateway.tenant) as tx:
        assert await _deleted(tx, Scope(gateway.tenant)) == {TRAINS}
    await agent.save(TRAINS)
    async with postgres.for_tenant(gateway.tenant) as tx:
        assert await _deleted(tx, Scope(gateway.tenant)) == set()
