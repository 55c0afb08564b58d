"""Statements on dream runs, their passes and their changes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Update,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.dreams.runs.dream_run import PassState, Run, RunState
from shared.dreams.runs.table import dream_change, dream_pass, dream_run, preference_occurrence
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import DreamPass
from shared.infra.postgres import tenant_filter


async def add_run(
    connection: AsyncConnection, values: Mapping[str, Any], passes: Sequence[DreamPass]
) -> bool:
    """Insert a run with its passes, unless its scope has a running one. Return whether it was inserted."""
    statement = upsert(dream_run).values(dict(values)).on_conflict_do_nothing().returning(dream_run.c.id)
    if await connection.scalar(statement) is None:
        return False
    rows = [
        {
            "tenant": values["tenant"],
            "run_id": values["id"],
            "name": name,
            "position": position,
            "state": PassState.WAITING,
        }
        for position, name in enumerate(passes)
    ]
    await connection.execute(insert(dream_pass), rows)
    return True


async def get(connection: AsyncConnection, tenant: str, run_id: str, *, lock: bool = False) -> Run | None:
    """Return a run with its passes, or None; `lock` locks its row until the transaction ends."""
    statement = select(dream_run).where(tenant_filter(dream_run, tenant), dream_run.c.id == run_id)
    row = (await connection.execute(statement.with_for_update() if lock else statement)).mappings().first()
    if row is None:
        return None
    where = (tenant_filter(dream_pass, tenant), dream_pass.c.run_id == run_id)
    passes = await connection.execute(select(dream_pass).where(*where).order_by(dream_pass.c.position))
    return Run.from_row(row, list(passes.mappings()))


async def page(
    connection: AsyncConnection,
    caller: Caller,
    filters: Mapping[str, str],
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[Run]:
    """Return runs that the caller may see, newest first, without their passes.

    `filters` are values by column; `after` is the last position of the page before.
    """
    conditions: list[ColumnElement[bool]] = [tenant_filter(dream_run, caller.tenant)]
    bound = {"agent_id": caller.agent_id, "user_id": caller.user_id}
    for name, value in {**filters, **{k: v for k, v in bound.items() if v is not None}}.items():
        conditions.append(dream_run.c[name] == value)
    if after is not None:
        same = and_(dream_run.c.created_at == after[0], dream_run.c.id > after[1])
        conditions.append(or_(dream_run.c.created_at < after[0], same))
    statement = (
        select(dream_run)
        .where(*conditions)
        .order_by(dream_run.c.created_at.desc(), dream_run.c.id)
        .limit(limit)
    )
    return [Run.from_row(row, []) for row in (await connection.execute(statement)).mappings()]


async def start_pass(connection: AsyncConnection, run: Run, name: DreamPass, **columns: Any) -> None:
    """Save that a pass has started, with further columns that are known so far."""
    started = func.coalesce(dream_pass.c.started_at, func.now())
    await connection.execute(_update_pass(run, name).values(started_at=started, **columns))


async def end_pass(
    connection: AsyncConnection,
    run: Run,
    name: DreamPass,
    state: PassState,
    reason: str | None = None,
    **columns: Any,
) -> None:
    """Save how a pass ended."""
    values = {"state": state, "reason": reason, "finished_at": func.now(), **columns}
    started = func.coalesce(dream_pass.c.started_at, func.now())
    await connection.execute(_update_pass(run, name).values(started_at=started, **values))


def _update_pass(run: Run, name: DreamPass) -> Update:
    where = (tenant_filter(dream_pass, run.tenant), dream_pass.c.run_id == run.id, dream_pass.c.name == name)
    return update(dream_pass).where(*where)


async def end_run(connection: AsyncConnection, run: Run, state: RunState) -> None:
    """Save that a run has ended or was undone."""
    ended_at = {"undone_at": func.now()} if state is RunState.UNDONE else {"finished_at": func.now()}
    await connection.execute(
        update(dream_run)
        .where(tenant_filter(dream_run, run.tenant), dream_run.c.id == run.id)
        .values(state=state, **ended_at)
    )


async def last_finished_at(connection: AsyncConnection, scope: Scope, name: DreamPass) -> datetime | None:
    """Return when this pass last ended with state `done` in a run over exactly this scope."""
    same_user = dream_run.c.user_id.is_not_distinct_from(scope.user_id)
    statement = (
        select(func.max(dream_pass.c.finished_at))
        .join(
            dream_run, (dream_run.c.tenant == dream_pass.c.tenant) & (dream_run.c.id == dream_pass.c.run_id)
        )
        .where(
            tenant_filter(dream_run, scope.tenant),
            dream_run.c.agent_id == scope.agent_id,
            same_user,
            ~dream_run.c.dry_run,
        )
        .where(dream_pass.c.name == name, dream_pass.c.state == PassState.DONE)
    )
    finished_at: datetime | None = await connection.scalar(statement)
    return finished_at


async def insert_changes(connection: AsyncConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the diff of a pass."""
    if rows:
        await connection.execute(insert(dream_change), [dict(row) for row in rows])


async def changes(connection: AsyncConnection, tenant: str, run_id: str) -> list[dict[str, Any]]:
    """Return the diff of a run, in the order in which the changes were made."""
    names = ("pass", "action", "entry_id", "version", "reason", "previous_state", "successors")
    where = (tenant_filter(dream_change, tenant), dream_change.c.run_id == run_id)
    rows = await connection.execute(
        select(*(dream_change.c[name] for name in names)).where(*where).order_by(dream_change.c.id)
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def _of_scope(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    same_user = preference_occurrence.c.user_id.is_not_distinct_from(scope.user_id)
    return (
        tenant_filter(preference_occurrence, scope.tenant),
        preference_occurrence.c.agent_id == scope.agent_id,
        same_user,
    )


async def expire(connection: AsyncConnection, tenant: str, age: timedelta) -> int:
    """Delete runs that have ended and were created longer ago than `age`. Return how many."""
    is_old = (dream_run.c.state != RunState.RUNNING, dream_run.c.created_at < func.now() - age)
    return (
        await connection.execute(delete(dream_run).where(tenant_filter(dream_run, tenant), *is_old))
    ).rowcount
