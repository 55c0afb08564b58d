"""How Postgres finds the turns of hits: by an index of their keys, whatever it knows about the table."""

import re
from functools import partial

import pytest
from sqlalchemy import text

from shared.conversation.turns import queries
from shared.conversation.turns.search import TurnFilters
from shared.foundation.scope import Scope
from shared.infra import prepared
from tests.conftest import Gateway

_MANY = (
    """
    INSERT INTO session (tenant, id, kind, agent_id, user_id, namespace, store_types, folded_id)
    SELECT :tenant, 's' || n, 'session', 'default', 'ada', 'session/s' || n, '{tmp}', 's' || n
    FROM generate_series(1, 100) n
    """,
    """
    INSERT INTO turn (tenant, session_id, seq, agent_id, user_id, role, content, search_terms)
    SELECT :tenant, 's' || n, seq, 'default', 'ada', 'user', 'x', ''
    FROM generate_series(1, 100) n, generate_series(1, 100) seq
    """,
)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("filters", [TurnFilters(), TurnFilters(except_session="s")])
async def test_the_turns_of_hits_are_found_by_their_keys_without_statistics(
    gateway: Gateway, filters: TurnFilters, mode: str
) -> None:
    """With the other conditions beside the keys, 200 of 100 000 turns took ten seconds after a bulk load."""
    scope = Scope(gateway.tenant, "default", "ada")
    compiled = prepared._compile(queries._select_by_keys(partial(filters.to_sql, scope)))
    keys = {"session_ids": [f"s{n % 100}" for n in range(200)], "seqs": [1 + n // 2 for n in range(200)]}
    arguments = compiled.arguments({"tenant": gateway.tenant, **keys})
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        for statement in _MANY:
            await tx.execute(text(statement), {"tenant": gateway.tenant})
        driver = prepared.driver_of(tx.connection)
        await driver.execute(f"SET LOCAL plan_cache_mode = '{mode}'")
        plan = "\n".join(row[0] for row in await driver.fetch(f"EXPLAIN {compiled.sql}", *arguments))
    assert re.search(r"using turn_pkey.*\n *Index Cond: .*session_id = .*seq = ", plan), plan
