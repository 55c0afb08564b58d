"""A row in every table with a tenant, with a text that a deletion must remove."""

import json
from typing import Any

import asyncpg
from sqlalchemy import ARRAY, JSON, Boolean, Column, DateTime, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import TSVECTOR

from migrations.schema import metadata
from shared.foundation.content import INFO, Content, Names

PLANTED = "quincequince"
MEMORY, SESSION, RUN, AGENT, USER = "0123456789ab", "trip", "run-1", "helper", "ada"
TURN = f"{SESSION}#1"
_IDS = {
    "agent_id": AGENT,
    "user_id": USER,
    "session_id": SESSION,
    "memory_id": MEMORY,
    "entry_id": MEMORY,
    "run_id": RUN,
    "owner_kind": "session",
    "origin_channel": "api",
    "origin_trust": "user",
    "owner_id": SESSION,
    "record_ids": [MEMORY, SESSION, TURN],
    "recalled_ids": [MEMORY],
    "recalled_lines": [{"id": MEMORY, "line": PLANTED}],
    "sources": [{"session_id": SESSION, "seq": 1, "speaker": PLANTED}],
}
# What the product reads before it deletes must be valid.
_VALID: dict[tuple[str, str], Any] = {
    ("session", "kind"): "session",
    ("session", "store_types"): ["tmp"],
    ("session", "namespace"): f"session/{SESSION}",
    ("memory", "state"): "final",
    ("memory", "archived_by"): None,
    ("memory", "decided_by"): None,
    ("memory", "verdict"): None,
    ("playbook", "outcome"): "success",
    ("playbook", "reason"): "satisfied",
    ("skill", "origin"): "caller",
    ("skill", "summary_origin"): "caller",
    ("skill_use", "used_by"): "caller",
    ("graph_entity", "type"): "Topic",
    ("graph_triple", "object_id"): None,
    ("graph_source", "entity_id"): None,
    ("skill_proposal", "state"): "published",
    ("skill_proposal", "session_ids"): [SESSION],
    ("proposal", "state"): "held",
    ("proposal", "memory_id"): None,
    ("proposal", "evidence_user_ids"): [USER],
    ("proposal_evidence", "memory_id"): None,
    ("proposal_evidence", "proposal_id"): "x",
}
_PRIMARY_IDS = {"session": SESSION, "memory": MEMORY, "dream_run": RUN, "agent": AGENT}
# Tables without text of callers, and those of the work that a deletion itself leaves.
_NOT_PLANTED = {"tenant", "tenant_secret", "api_key", "removal", "erasure", "job"}


def _value(table: Table, column: Column[Any]) -> Any:
    if column.name == "id" and table.name in _PRIMARY_IDS:
        return _PRIMARY_IDS[table.name]
    if (table.name, column.name) in _VALID:
        return _VALID[(table.name, column.name)]
    if column.name in _IDS:
        return _IDS[column.name]
    if isinstance(column.type, DateTime) and column.nullable:
        return None
    is_planted = isinstance(column.info.get(INFO), Content) or _is_cleared(table, column)
    text = PLANTED if is_planted else "x"
    for kind, value in (
        (TSVECTOR, text),
        (ARRAY, [text]),
        (JSON, {text: text}),
        (LargeBinary, f"\\x{text.encode().hex()}"),
        (Text, text),
        (DateTime, "2026-01-01T00:00:00Z"),
        (Boolean, False),
    ):
        if isinstance(column.type, kind):
            return value
    return 1


def _is_cleared(table: Table, column: Column[Any]) -> bool:
    names = [other.info[INFO] for other in table.c if isinstance(other.info.get(INFO), Names)]
    return any(column.name in declared.columns for declared in names)


async def plant(connection: asyncpg.Connection, tenant: str) -> set[str]:
    """Insert a row into every table, and return the tables that hold the planted text."""
    planted = [
        table for table in metadata.sorted_tables if "tenant" in table.c and table.name not in _NOT_PLANTED
    ]
    for table in planted:
        columns = [c for c in table.c if c.computed is None and c.identity is None]
        row = {column.name: _value(table, column) for column in columns} | {"tenant": tenant}
        names = ", ".join(f'"{name}"' for name in row)
        statement = (
            f"INSERT INTO {table.name} ({names})"  # noqa: S608
            f" SELECT {names} FROM jsonb_populate_record(NULL::{table.name}, $1::jsonb)"
        )
        async with connection.transaction():
            await connection.execute("SET LOCAL session_replication_role = replica")
            await connection.execute(statement, json.dumps(row))
    return {table.name for table in planted}
