"""Statements on dream runs, their passes and their changes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    Update,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from shared.dreams.runs.dream_run import PassState, Run, RunState
from shared.dreams.runs.table import dream_change, dream_pass, dream_run
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import DreamPass
from shared.infra.postgres import exact_scope, keyset_after, tenant_filter
from shared.infra.transaction import Transaction
from shared.platform.expiry_queries import shows_expired

# What a deletion clears of a pass.
_GONE: Mapping[str, Any] = {"inputs": {}, "proposed": None, "rejections": []}


async def add_run(tx: Transaction, values: Mapping[str, Any], passes: Sequence[DreamPass]) -> bool:
    """Insert a run with its passes, unless its scope has a running one. Return whether it was inserted."""
    statement = upsert(dream_run).values(dict(values)).on_conflict_do_nothing().returning(dream_run.c.id)
    if await tx.scalar(statement) is None:
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
    await tx.execute(insert(dream_pass), rows)
    return True


async def get(tx: Transaction, run_id: str, *, lock: bool = False) -> Run | None:
    """Return a run with its passes, or None; `lock` locks its row until the transaction ends.

    A pass that repeats the text of a record which has expired is without its texts.
    """
    statement = select(dream_run).where(tenant_filter(dream_run, tx.tenant), dream_run.c.id == run_id)
    row = (await tx.execute(statement.with_for_update() if lock else statement)).mappings().first()
    if row is None:
        return None
    where = (tenant_filter(dream_pass, tx.tenant), dream_pass.c.run_id == run_id)
    statement = select(dream_pass, shows_expired(dream_pass).label("has_expired")).where(*where)
    passes = (await tx.execute(statement.order_by(dream_pass.c.position))).mappings()
    return Run.from_row(row, [{**pass_, **(_GONE if pass_["has_expired"] else {})} for pass_ in passes])


async def get_running(tx: Transaction, scope: Scope) -> Run | None:
    """Return the run over exactly this scope that has not ended, with its passes, or None."""
    is_running = (exact_scope(dream_run, scope), dream_run.c.state == RunState.RUNNING)
    run_id = await tx.scalar(select(dream_run.c.id).where(*is_running))
    return None if run_id is None else await get(tx, run_id)


async def list_runs(
    tx: Transaction, caller: Caller, filters: dict[str, str], limit: int, after: tuple[datetime, str] | None
) -> list[Run]:
    """Return runs that the caller may see, newest first, without their passes.

    `filters` are values by column; `after` is the last position of the page before.
    """
    conditions = [tenant_filter(dream_run, caller.tenant)]
    conditions += [dream_run.c[name] == value for name, value in (filters | caller.binding_filter).items()]
    if after is not None:
        created_at, run_id = after
        conditions.append(
            keyset_after((dream_run.c.created_at, created_at, True), (dream_run.c.id, run_id, False))
        )
    statement = (
        select(dream_run)
        .where(*conditions)
        .order_by(dream_run.c.created_at.desc(), dream_run.c.id)
        .limit(limit)
    )
    return [Run.from_row(row, []) for row in (await tx.execute(statement)).mappings()]


async def start_pass(tx: Transaction, run: Run, name: DreamPass, **columns: Any) -> None:
    """Save that a pass has started, with further columns that are known so far."""
    await tx.execute(_update_pass(run, name).values(**columns))


async def add_usage(
    tx: Transaction, run: Run, name: DreamPass, input_tokens: int, output_tokens: int, cost: Decimal | None
) -> None:
    """Add the usage of one call to a pass, whichever attempt made it. `cost` is None without a price."""
    columns: dict[str, Any] = {
        "input_tokens": dream_pass.c.input_tokens + input_tokens,
        "output_tokens": dream_pass.c.output_tokens + output_tokens,
    }
    if cost is not None:
        columns["cost_usd"] = func.coalesce(dream_pass.c.cost_usd, 0) + cost
    await tx.execute(_update_pass(run, name).values(**columns))


async def end_pass(
    tx: Transaction,
    run: Run,
    name: DreamPass,
    state: PassState,
    reason: str | None = None,
    **columns: Any,
) -> None:
    """Save how a pass ended."""
    values = {"state": state, "reason": reason, "finished_at": func.now(), **columns}
    await tx.execute(_update_pass(run, name).values(**values))


def _update_pass(run: Run, name: DreamPass) -> Update:
    where = (tenant_filter(dream_pass, run.tenant), dream_pass.c.run_id == run.id, dream_pass.c.name == name)
    started_at = func.coalesce(dream_pass.c.started_at, func.now())
    return update(dream_pass).where(*where).values(started_at=started_at)


async def end_run(tx: Transaction, run: Run, state: RunState) -> None:
    """Save that a run has ended or was undone."""
    ended_at = {"undone_at": func.now()} if state is RunState.UNDONE else {"finished_at": func.now()}
    await tx.execute(
        update(dream_run)
        .where(tenant_filter(dream_run, run.tenant), dream_run.c.id == run.id)
        .values(state=state, **ended_at)
    )


async def insert_changes(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the diff of a pass."""
    if rows:
        await tx.execute(insert(dream_change), [dict(row) for row in rows])


async def list_changes(tx: Transaction, run_id: str) -> list[dict[str, Any]]:
    """Return the diff of a run, in the order in which the changes were made."""
    names = (
        *("pass", "action", "entry_id", "version", "reason", "previous_state", "previous_valid_until"),
        *("successors", "reinforcement_count", "added_count", "added_sources"),
    )
    where = (tenant_filter(dream_change, tx.tenant), dream_change.c.run_id == run_id)
    rows = await tx.execute(
        select(*(dream_change.c[name] for name in names)).where(*where).order_by(dream_change.c.id)
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


async def delete_old_runs(tx: Transaction, age: timedelta) -> int:
    """Delete runs that have ended and were created longer ago than `age`. Return how many."""
    is_old = (dream_run.c.state != RunState.RUNNING, dream_run.c.created_at < func.now() - age)
    return (await tx.execute(delete(dream_run).where(tenant_filter(dream_run, tx.tenant), *is_old))).rowcount
