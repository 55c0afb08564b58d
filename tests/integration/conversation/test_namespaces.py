"""Whose a namespace of working memory is: by its name in any spelling, until its owner or session is gone."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select, text, update

from shared.conversation.sessions import namespace_queries
from shared.conversation.sessions.table import working_namespace
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.platform.auth.rights import Owner
from tests.conftest import Gateway

PATROL, SESSION = "patrol/nightly", "session/trip"


@pytest.fixture
async def tx(gateway: Gateway) -> AsyncIterator[Transaction]:
    """A transaction of a tenant whose agent `a` has opened a patrol and a session for Ada."""
    await gateway.client.post("/v1/sessions", json={"id": "trip", "agent_id": "a", "user_id": "ada"})
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        scope = Scope(gateway.tenant, "a", "ada")
        assert await namespace_queries.add_owner(tx, scope, "Patrol/Nightly", None)
        yield tx


async def _owner(tx: Transaction, namespace: str) -> Owner:
    """Return the owner of a namespace, which is the same whether its row is locked or not."""
    (owner,) = (await namespace_queries.owners_of(tx, [namespace])).values()
    locked = await namespace_queries.lock_owner(tx, namespace)
    assert locked == (None if owner == Owner(namespace=owner.namespace) else owner)
    return owner


@pytest.mark.parametrize("namespace", [PATROL, SESSION, "PATROL/nightly", "Session/TRIP"])
async def test_a_namespace_belongs_to_who_opened_it_in_any_spelling(
    tx: Transaction, gateway: Gateway, namespace: str
) -> None:
    assert await _owner(tx, namespace) == Owner("a", "ada", namespace.casefold())
    taken = await namespace_queries.add_owner(tx, Scope(gateway.tenant, "b"), namespace, None)
    assert taken is False
    await namespace_queries.set_owner(tx, Scope(gateway.tenant, "b"), namespace, "trip")
    assert await _owner(tx, namespace) == Owner("b", None, namespace.casefold())


async def test_what_nobody_opened_is_nobodys(tx: Transaction, gateway: Gateway) -> None:
    assert await _owner(tx, "patrol/q") == Owner(namespace="patrol/q")
    assert await namespace_queries.lock_owner(tx, "patrol/q") is None


@pytest.mark.parametrize(
    ("namespace", "cleared", "is_deleted"),
    [
        (PATROL, "agent_id", True),
        (SESSION, "agent_id", True),
        (SESSION, "session_id", True),
        (PATROL, "session_id", False),
    ],
)
async def test_what_is_left_of_an_owner_or_a_session_that_is_gone_is_nobodys(
    tx: Transaction,
    gateway: Gateway,
    namespace: str,
    cleared: str,
    is_deleted: bool,  # noqa: FBT001
) -> None:
    of_namespace = (working_namespace.c.tenant == gateway.tenant, working_namespace.c.namespace == namespace)
    await tx.execute(update(working_namespace).where(*of_namespace).values({cleared: None}))
    owner = await _owner(tx, namespace)
    assert owner.is_deleted is is_deleted
    assert (owner.agent_id is None) is is_deleted


async def test_the_owner_of_a_namespace_that_somebody_is_opening_is_waited_for(
    tx: Transaction, gateway: Gateway
) -> None:
    await tx.execute(text("COMMIT"))
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as opening:
        await namespace_queries.lock_owner(opening, PATROL)
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as other:
            free = select(working_namespace.c.namespace).with_for_update(skip_locked=True)
            assert list(await other.scalars(free)) == [SESSION]
