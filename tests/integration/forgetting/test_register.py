"""A deletion walks every column that names its subjects, and changes and locks no other rows."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Table, func, insert, make_url, select, update
from sqlalchemy.ext.asyncio import create_async_engine

from migrations.schema import metadata
from shared.foundation import config
from shared.foundation.content import Effect, Subject
from shared.infra.transaction import Transaction
from shared.lifecycle import register
from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.forgetting.planted_rows import AGENT, MEMORY, RUN, SESSION, TURN, USER, plant

TABLES = metadata.tables


@pytest.fixture
async def tx(make_settings: Callable[..., config.Settings], tenant: str) -> AsyncIterator[Transaction]:
    """A transaction of the schema's owner, in which the tenant has one row in every table."""
    address = make_settings().postgres_url
    assert address is not None
    url = make_url(address.get_secret_value()).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        driver_connection = (await connection.get_raw_connection()).driver_connection
        await connection.execute(select(func.set_config("session_replication_role", "origin", True)))
        assert isinstance(driver_connection, asyncpg.Connection)
        await plant(driver_connection, tenant)
        await connection.execute(select(func.set_config("session_replication_role", "origin", True)))
        yield Transaction(connection, tenant)
        await connection.rollback()
    await engine.dispose()


async def _forget(tx: Transaction, tenant: str, subjects: Mapping[Subject, Sequence[str]]) -> set[str]:
    """Forget subjects, and return the columns by which one row each was changed."""
    counts = await register.forget(Transaction(tx.connection, tenant), subjects)
    assert set(counts.values()) <= {0, 1}
    return {column for column, count in counts.items() if count}


async def _row(tx: Transaction, tenant: str, name: str) -> dict[str, Any] | None:
    statement = select(TABLES[name]).where(TABLES[name].c.tenant == tenant)
    row = (await tx.execute(statement)).mappings().one_or_none()
    return None if row is None else dict(row)


@pytest.mark.parametrize(
    ("subject", "subject_id", "columns", "counted_again"),
    [
        (
            Subject.USER,
            USER,
            {
                "deleted_source_session.user_id",
                "memory_tombstone.user_id",
                *("idempotent_response.user_id", "charge.user_id", "pinned_text.user_id"),
                "business_context_part.user_id",
                *("skill_file.user_id", "skill_proposal.user_id", "graph_tombstone.user_id"),
            },
            set[str](),
        ),
        (
            Subject.AGENT,
            AGENT,
            {
                "memory_tombstone.agent_id",
                *("agent.id", "agent_text.agent_id", "agent_file.agent_id", "pinned_text.agent_id"),
                "business_context_part.agent_id",
                *("skill_file.agent_id", "skill_proposal.agent_id", "graph_tombstone.agent_id"),
            },
            set[str](),
        ),
        (
            Subject.MEMORY,
            MEMORY,
            {
                *("memory.id", "memory_history.memory_id", "recalled_memory.memory_id", "turn.recalled_ids"),
                *("dream_undone_change.memory_id", "dream_reviewed_memory.memory_id"),
                *("dream_refused_memory.memory_id", "dream_pass.record_ids", "dream_change.entry_id"),
                *("idempotent_response.record_ids", "graph_source.memory_id"),
                "dream_extracted_memory.memory_id",
            },
            {"dream_pass.record_ids"},  # its columns are cleared to a default, which may be the content
        ),
        (
            Subject.PLAYBOOK,
            "x",
            {"playbook.id", "scratchpad_snippet.playbook_id"},
            set[str](),
        ),
        (
            Subject.SKILL,
            "x",
            {"skill.id", "skill_proposal.skill_ids"},
            set[str](),
        ),
        (
            Subject.ENTITY,
            "x",
            {
                *("graph_name.entity_id", "graph_triple.subject_id", "graph_entity.id"),
                "dream_graph_change.record_id",
            },
            set[str](),
        ),
        (
            Subject.TRIPLE,
            "x",
            {"graph_source.triple_id", "graph_triple.id", "dream_graph_change.record_id"},
            set[str](),
        ),
        (Subject.DREAM_RUN, RUN, {"dream_run.id"}, set[str]()),
        # The proposal goes with its evidence.
        (Subject.PROPOSAL, "x", {"proposal_evidence.proposal_id"}, set[str]()),
        (
            Subject.TURN,
            TURN,
            {
                *("turn.seq", "feedback_signal.previous_seq", "dream_pass.record_ids"),
                *("idempotent_response.record_ids", "proposal_evidence.seq"),
            },
            {"dream_pass.record_ids"},
        ),
        (
            Subject.WITHDRAWN_TURN,
            TURN,
            {
                *("recalled_memory.seq", "feedback_signal.seq", "preference_occurrence.seq"),
                *("dream_read_turn.seq", "dream_evaluated_session.seq", "dream_pass.record_ids"),
                *("idempotent_response.record_ids", "session_summary.last_seq", "graph_source.seq"),
                "proposal_evidence.seq",
            },
            {"dream_pass.record_ids"},
        ),
    ],
)
async def test_each_row_that_names_a_subject_is_changed_and_counted_once(
    tx: Transaction,
    tenant: str,
    subject: Subject,
    subject_id: str,
    columns: set[str],
    counted_again: set[str],
) -> None:
    assert await _forget(tx, tenant, {subject: ["nobody#1"]}) == set()
    assert await _forget(tx, f"{tenant}-other", {subject: [subject_id]}) == set()
    assert await _forget(tx, tenant, {subject: ["nobody#1", subject_id]}) == columns
    assert await _forget(tx, tenant, {subject: [subject_id]}) == counted_again


async def test_columns_are_cleared_to_null_or_to_their_default(tx: Transaction, tenant: str) -> None:
    subjects = {Subject.USER: [USER], Subject.TURN: [TURN], Subject.DREAM_RUN: [RUN]}
    await _forget(tx, tenant, subjects)
    charge, run_pass = await _row(tx, tenant, "charge"), await _row(tx, tenant, "dream_pass")
    assert charge is not None
    assert (charge["user_id"], charge["session_id"], charge["usage_id"]) == (None, None, None)
    assert charge["model"] is not None, "the money was spent"
    assert run_pass is None, "it goes with its run"


async def test_a_list_loses_what_was_deleted_and_keeps_the_rest(tx: Transaction, tenant: str) -> None:
    turn = TABLES["turn"]
    lines = [{"id": MEMORY, "line": "a"}, {"id": "other", "line": "b"}]
    values = {"recalled_ids": [MEMORY, "other"], "recalled_lines": lines}
    await tx.execute(update(turn).where(turn.c.tenant == tenant).values(values))
    await _forget(tx, tenant, {Subject.MEMORY: [MEMORY]})
    row, run_pass = await _row(tx, tenant, "turn"), await _row(tx, tenant, "dream_pass")
    assert row is not None
    assert (row["recalled_ids"], row["recalled_lines"]) == (["other"], lines[1:])
    assert run_pass is not None
    assert (run_pass["run_id"], run_pass["inputs"], run_pass["proposed"]) == (RUN, {}, None)


async def test_a_row_that_names_another_kind_of_owner_by_the_same_id_stays(
    tx: Transaction, tenant: str
) -> None:
    row = {"tenant": tenant, "owner_kind": "agent", "owner_id": SESSION, "version": 1}
    await tx.execute(insert(TABLES["state_store"]).values(row))
    assert await _forget(tx, tenant, {Subject.AGENT: [SESSION]}) == {"state_store.owner_id"}
    store = await _row(tx, tenant, "state_store")
    assert store is not None
    assert store["owner_kind"] == "session"


def test_a_row_is_deleted_before_it_is_changed_and_after_those_below_it() -> None:
    references = list(register.references())
    tables = list(dict.fromkeys(reference.table for reference in references))
    assert tables == [table for table in reversed(metadata.sorted_tables) if table in tables]
    for table in tables:
        effects = [reference.names.effect for reference in references if reference.table is table]
        assert effects == sorted(effects, key=lambda effect: effect is not Effect.DELETE_ROW)


async def test_the_rows_of_one_table_are_locked(agent: Agent, gateway: Gateway) -> None:
    session = await agent.session(user_id=USER)
    spend = {"usage_id": "u", "model": "m", "usage": {"total_tokens": 1}}
    await agent.request("POST", f"/v1/sessions/{session}/spend", json=spend, status=HTTPStatus.CREATED)
    await agent.save("A memory.", user_id=USER)
    await agent.request("PUT", "/v1/pinned/style", json={"content": "Be brief.", "user_id": USER})

    async def locked(*tables: str) -> set[str]:
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as other:
            return {name for name in tables if await _is_locked(other, TABLES[name])}

    async with gateway.resources.postgres.for_tenant(gateway.tenant) as locking:
        await register.lock(locking, "charge", {Subject.USER: ["nobody"]})
        assert await locked("charge", "pinned_text") == set()
        await register.lock(locking, "charge", {Subject.USER: [USER]})
        assert await locked("charge", "session", "memory", "pinned_text") == {"charge"}


async def _is_locked(tx: Transaction, table: Table) -> bool:
    rows = select(*table.primary_key).with_for_update(skip_locked=True).subquery()
    return await tx.scalar(select(func.count()).select_from(rows)) == 0


@pytest.mark.parametrize(("count", "is_hashed"), [(1, False), (100, False), (101, True)])
async def test_many_ids_are_looked_for_by_another_statement_and_found_as_well(
    tx: Transaction, tenant: str, count: int, *, is_hashed: bool
) -> None:
    ids = [MEMORY, *(f"other-{number}" for number in range(1, count))]
    turn = TABLES["turn"]
    condition = register._overlaps(turn.c.recalled_ids, ids)
    assert ("unnest" in str(condition)) is is_hashed
    found = select(func.count()).where(turn.c.tenant == tenant, condition)
    assert await tx.scalar(found) == 1
    others = select(func.count()).where(
        turn.c.tenant == tenant, register._overlaps(turn.c.recalled_ids, ids[1:])
    )
    assert await tx.scalar(others) == 0


async def test_what_is_changed_is_locked_first(tx: Transaction) -> None:
    """Rows are locked in the order of their keys: two deletions of the same rows must not deadlock."""
    statements: list[str] = []
    execute = tx.execute

    async def record(statement: Any, *arguments: Any, **options: Any) -> Any:
        statements.append(str(statement).split(maxsplit=1)[0])
        return await execute(statement, *arguments, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tx, "execute", record)
        await register.forget(tx, {Subject.TURN: [TURN]})
    assert statements[::2] == ["SELECT"] * 5
    assert sorted(statements[1::2]) == ["DELETE", "DELETE", "UPDATE", "UPDATE", "UPDATE"]
