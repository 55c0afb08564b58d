"""Rows inserted directly, so that every table of a tenant holds the secret.

Some tables are still empty after the product was used, because only workers write them. Each gets one
row: ids name existing records, and every other text is the secret. The columns are read from the
database, so a new table needs no change here.
"""

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import asyncpg

from tests.isolation.ids import Ids
from tests.state import StateInspector

_COLUMNS = """
    SELECT column_name, udt_name FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name = $1 AND is_identity = 'NO' AND is_generated = 'NEVER'
"""
# Values that a constraint of the table demands.
_VALID: dict[str, dict[str, Any]] = {
    "memory": {"contested_with": []},
    "playbook": {"outcome": "success", "reason": "satisfied"},
    "skill": {"origin": "caller", "summary_origin": "caller"},
    "skill_use": {"used_by": "caller"},
    "graph_entity": {"type": "Topic"},
    "graph_triple": {"literal": None},
    "graph_source": {"entity_id": None},
    "skill_proposal": {"state": "published"},
    "proposal": {"state": "held", "decided_at": None, "memory_id": None},
    "proposal_evidence": {"memory_id": None},
}


async def fill(inspector: StateInspector, tenant: str, ids: Ids, secret: str) -> None:
    """Insert a row into every table that has none of this tenant."""
    ids_by_column: dict[str, Any] = {
        "tenant": tenant,
        "run_id": ids.run,
        "session_id": ids.session,
        "entry_id": ids.memory,
        "memory_id": ids.memory,
        "agent_id": ids.agent,
        "user_id": ids.user,
    }
    for table in await inspector.tables():
        if not await inspector.postgres.fetchval(f"SELECT count(*) FROM {table} WHERE tenant = $1", tenant):  # noqa: S608
            await _insert(inspector.postgres, table, ids_by_column, secret)


async def _insert(
    connection: asyncpg.Connection, table: str, ids_by_column: Mapping[str, Any], secret: str
) -> None:
    row = {
        column: ids_by_column.get(column, _value(type_name, secret))
        for column, type_name in await connection.fetch(_COLUMNS, table)
    } | _VALID.get(table, {})
    # As JSON, so that Postgres converts each value to the type of its column.
    statement = (
        f"INSERT INTO {table} ({', '.join(row)})"  # noqa: S608
        f" SELECT {', '.join(row)} FROM jsonb_populate_record(NULL::{table}, $1::jsonb)"
    )
    async with connection.transaction():
        # Foreign keys are not checked: the row only has to be visible or not.
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(statement, json.dumps(row))


def _value(type_name: str, secret: str) -> Any:
    values: dict[str, Any] = {
        "text": secret,
        "_text": [secret],
        "jsonb": {secret: secret},
        "timestamptz": "2026-01-01T00:00:00Z",
        "bool": False,
        "uuid": str(uuid4()),
        "bytea": f"\\x{secret.encode().hex()}",
    }
    return values.get(type_name, 1)
