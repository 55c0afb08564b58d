"""A text planted in every column that is declared to hold text is gone after a deletion that concerns it."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest
from sqlalchemy import ARRAY, JSON, Boolean, Column, DateTime, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import TSVECTOR

from migrations.schema import metadata
from shared.foundation import config
from shared.foundation.content import INFO, Content, Names
from tests.conftest import Gateway, running_gateway
from tests.integration.forgetting.conftest import records_with
from tests.journey.agent import Agent
from tests.state import StateInspector

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
}
_PRIMARY_IDS = {"session": SESSION, "memory": MEMORY, "dream_run": RUN, "agent": AGENT}
# Tables without text of callers, and those of the work that a deletion itself leaves.
_NOT_PLANTED = {"tenant", "tenant_secret", "api_key", "removal", "erasure", "job"}
_TABLES_WITH_TEXT = {
    *("memory", "memory_history", "session", "turn", "observation", "feedback_signal", "agent", "agent_text"),
    *("agent_file", "state_key", "state_collection", "transcript_entry", "dream_pass", "charge"),
    *("preference_occurrence", "idempotent_response", "pinned_text", "scratchpad_snippet", "promotion"),
    *("business_context_part", "preference", "playbook"),
    *("skill", "skill_version", "skill_file", "skill_proposal"),
    *("graph_entity", "graph_name", "graph_triple", "dream_graph_change"),
}
_AGENTS = {"agent", "agent_text", "agent_file"}
_PINNED = {"pinned_text"}
_PREFERENCES = {"preference"}
_SKILLS = {"skill", "skill_version", "skill_file"}
_GRAPH = {"graph_entity", "graph_name", "graph_triple", "dream_graph_change"}
# Of the tenant: of no user, agent or session.
_DOCUMENTS = {"document", "document_chunk", "parsed_chunk"}
_MEMORIES = {"memory", "memory_history", "memory_tombstone", "dream_change"}


def _value(table: Table, column: Column[Any]) -> Any:
    if column.name == "id" and table.name in _PRIMARY_IDS:
        return _PRIMARY_IDS[table.name]
    if column.name in _IDS:
        return _IDS[column.name]
    if (table.name, column.name) in _VALID:
        return _VALID[(table.name, column.name)]
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


async def _tables_with_planted_text(inspector: StateInspector, gateway: Gateway) -> set[str]:
    hex_text = PLANTED.encode().hex()
    names = await records_with(inspector, gateway, PLANTED) + await records_with(inspector, gateway, hex_text)
    return {name.split()[0] for name in names}


@pytest.fixture
async def gateway(make_settings: Callable[..., config.Settings], tenant: str) -> AsyncIterator[Gateway]:
    """A gateway with a database of its own: no worker of another test can read the planted rows."""
    async with running_gateway(make_settings(apart=True), tenant) as served:
        yield served


@pytest.mark.parametrize(
    ("path", "stays"),
    [
        (f"/v1/users/{USER}", _AGENTS | _DOCUMENTS),
        (f"/v1/agents/{AGENT}", _DOCUMENTS),
        (
            f"/v1/sessions/{SESSION}",
            _AGENTS | _DOCUMENTS | _MEMORIES | _PINNED | _PREFERENCES | _SKILLS | _GRAPH,
        ),
    ],
)
async def test_no_declared_column_keeps_the_text_of_what_was_deleted(
    agent: Agent, gateway: Gateway, inspector: StateInspector, path: str, stays: set[str]
) -> None:
    await plant(inspector.postgres, gateway.tenant)
    before = await _tables_with_planted_text(inspector, gateway)
    assert before >= _TABLES_WITH_TEXT
    await agent.request("DELETE", path)
    assert await _tables_with_planted_text(inspector, gateway) == stays & before


async def test_every_copy_of_a_memory_is_deleted_with_it(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    await plant(inspector.postgres, gateway.tenant)
    before = await _tables_with_planted_text(inspector, gateway)
    await agent.request("DELETE", f"/v1/memories/{MEMORY}")
    gone = before - await _tables_with_planted_text(inspector, gateway)
    assert gone == {
        *("memory", "memory_history", "preference", "idempotent_response"),
        *("dream_pass", "dream_change"),
    }
    (turn,) = await inspector.postgres.fetch(
        "SELECT recalled_lines::text, recalled_ids FROM turn WHERE tenant = $1", gateway.tenant
    )
    assert (turn["recalled_lines"], turn["recalled_ids"]) == ("[]", [])
