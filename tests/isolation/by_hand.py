"""Rows that only workers write, planted by hand so that every table of the tenant holds a canary.

A table that is still bare once the product has been used gets one row: keys name what is there,
every other text is the canary. A new table is filled by its columns alone.
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


async def fill(eye: StateInspector, tenant: str, ids: Ids, canary: str) -> None:
    """Give every table of a tenant that has no row of it one."""
    named: dict[str, Any] = {
        "tenant": tenant,
        "run_id": ids.run,
        "session_id": ids.session,
        "entry_id": ids.memory,
        "memory_id": ids.memory,
        "agent_id": ids.agent,
        "user_id": ids.user,
    }
    for table in await eye.tables():
        if not await eye.postgres.fetchval(f"SELECT count(*) FROM {table} WHERE tenant = $1", tenant):  # noqa: S608
            await _insert(eye.postgres, table, named, canary)


async def _insert(connection: asyncpg.Connection, table: str, named: Mapping[str, Any], canary: str) -> None:
    row = {
        column: named.get(column, _value(kind, canary))
        for column, kind in await connection.fetch(_COLUMNS, table)
    }
    # As JSON, so that Postgres makes of each value what its column holds.
    statement = (
        f"INSERT INTO {table} ({', '.join(row)})"  # noqa: S608
        f" SELECT {', '.join(row)} FROM jsonb_populate_record(NULL::{table}, $1::jsonb)"
    )
    async with connection.transaction():
        # What a row points at need not be there: it is there to be seen, or not.
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(statement, json.dumps(row))


def _value(kind: str, canary: str) -> Any:
    values: dict[str, Any] = {
        "text": canary,
        "_text": [canary],
        "jsonb": {canary: canary},
        "timestamptz": "2026-01-01T00:00:00Z",
        "bool": False,
        "uuid": str(uuid4()),
        "bytea": f"\\x{canary.encode().hex()}",
    }
    return values.get(kind, 1)
