"""How Postgres finds the rows of hits: by an index of their keys, whatever it knows about the table."""

from collections.abc import AsyncIterator, Callable

import pytest
from sqlalchemy import Subquery, text

from shared.foundation import config
from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.memory.longterm import hit_queries
from tests.conftest import Gateway, running_gateway

_MANY = text(
    """
    INSERT INTO memory (tenant, id, agent_id, content, state, fingerprint, search_terms, sources)
    SELECT :tenant, lpad(to_hex(n), 12, '0'), 'default', 'x', 'final', decode(md5(n::text), 'hex'), '',
           jsonb_build_array(jsonb_build_object('session_id', 's' || n, 'seq', n))
    FROM generate_series(1, 2000) n
    """
)


@pytest.fixture
async def gateway(make_settings: Callable[..., config.Settings], tenant: str) -> AsyncIterator[Gateway]:
    """A gateway with a database of its own: nothing has been analysed in it."""
    async with running_gateway(make_settings(apart=True), tenant) as served:
        yield served


@pytest.mark.parametrize(
    ("found", "keys", "index"),
    [
        (hit_queries._BY_ID, {"ids": ["a", "b"]}, "memory_pkey"),
        (hit_queries._AT_TURN, {"sessions": ["s", "t"], "seqs": [1, 2]}, "memory_source_idx"),
    ],
)
async def test_the_rows_of_hits_are_found_by_their_keys_without_statistics(
    gateway: Gateway, found: Subquery, keys: dict[str, list[str | int]], index: str
) -> None:
    compiled = prepared._compile(hit_queries._unfiltered(found, has_user=False))
    arguments = compiled.arguments({**prepared.scope_values(Scope(gateway.tenant)), **keys})
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(_MANY, {"tenant": gateway.tenant})
        driver = prepared.driver_of(tx.connection)
        await driver.execute(
            "SET LOCAL plan_cache_mode = 'force_generic_plan'; SET LOCAL enable_seqscan = off"
        )
        plan = "\n".join(row[0] for row in await driver.fetch(f"EXPLAIN {compiled.sql}", *arguments))
    assert f"using {index}" in plan, plan
