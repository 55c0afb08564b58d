"""Every statement on charges and on tenants' own prices."""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Numeric,
    RowMapping,
    Text,
    any_,
    bindparam,
    delete,
    func,
    insert,
    null,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from shared.infra.postgres import advisory_lock_key, is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.platform.spend.charge import Charge, ChargeState, columns_of
from shared.platform.spend.table import charge as charge_table
from shared.platform.spend.table import price
from shared.platform.spend.usage import Usage

_TOKENS = tuple(columns_of(Usage(0)))
_IDS = bindparam("ids", type_=ARRAY(Text))
_LOCK_LEDGER = text("SELECT pg_advisory_xact_lock_shared(:key)")
_LOCK_LEDGER_ALONE = text("SELECT pg_advisory_xact_lock(:key)")


async def lock_ledger(tx: Transaction, *, exclusive: bool = False) -> None:
    """Lock a tenant's ledger until the transaction ends: shared to book charges, exclusively to set a budget.

    A budget that is set sums up the existing charges. Without the exclusive lock, a charge that is
    booked meanwhile would be counted by nobody.
    """
    statement = _LOCK_LEDGER_ALONE if exclusive else _LOCK_LEDGER
    await tx.fetch(statement, {"key": advisory_lock_key("spend", tx.tenant)})


async def add(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> list[Charge]:
    """Insert charges and return them in their order."""
    if not rows:
        return []
    statement = insert(charge_table).values([dict(row) for row in rows]).returning(charge_table)
    by_id = {row["id"]: Charge.from_row(row) for row in (await tx.execute(statement)).mappings()}
    return [by_id[row["id"]] for row in rows]


_RESERVE = text(
    """
    INSERT INTO charge (tenant, id, agent_id, user_id, purpose, model, input_tokens, output_tokens,
                        cached_tokens, cost_usd, state, reserved_until)
    SELECT :tenant, r.*, 'reserved', now() + make_interval(secs => :seconds)
    FROM unnest(:id, :agent_id, :user_id, :purpose, :model, :input_tokens, :output_tokens, :cached_tokens,
                :cost_usd) AS r
    """
).bindparams(
    *(bindparam(name, type_=ARRAY(Text)) for name in ("id", "agent_id", "user_id", "purpose", "model")),
    *(bindparam(name, type_=ARRAY(BigInteger)) for name in _TOKENS),
    bindparam("cost_usd", type_=ARRAY(Numeric)),
)


async def reserve(tx: Transaction, rows: Sequence[Mapping[str, Any]], seconds: float) -> None:
    """Insert charges that are reserved for this many seconds, each row with the same columns."""
    if rows:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        await tx.fetch(_RESERVE, {**columns, "tenant": tx.tenant, "seconds": seconds})


async def list_of_session(tx: Transaction, session_id: str, usage_ids: Collection[str]) -> dict[str, Charge]:
    """Return a session's charges with these usage ids, by usage id."""
    in_session = (tenant_filter(charge_table, tx.tenant), charge_table.c.session_id == session_id)
    statement = select(charge_table).where(*in_session, is_any_of(charge_table.c.usage_id, usage_ids))
    charges = [Charge.from_row(row) for row in (await tx.execute(statement)).mappings()]
    return {charge.usage_id or "": charge for charge in charges}


_LOCK = (
    select(charge_table)
    .where(charge_table.c.tenant == bindparam("tenant"), charge_table.c.id == any_(_IDS))
    .order_by(charge_table.c.id)
    .with_for_update()
)


async def lock(tx: Transaction, ids: Collection[str]) -> list[Charge]:
    """Lock charges in the order of their ids, and return them."""
    rows = await tx.fetch(_LOCK, {"tenant": tx.tenant, "ids": list(ids)})
    return [Charge.from_row(row) for row in rows]


async def lock_expired_reservations(tx: Transaction, limit: int) -> list[Charge]:
    """Lock and return reservations past their `reserved_until`, whose worker must be dead.

    Those that another sweep has locked are skipped.
    """
    is_expired = (charge_table.c.state == ChargeState.RESERVED, charge_table.c.reserved_until < func.now())
    statement = select(charge_table).where(tenant_filter(charge_table, tx.tenant), *is_expired)
    ordered = statement.order_by(charge_table.c.id).limit(limit)
    rows = await tx.execute(ordered.with_for_update(skip_locked=True))
    return [Charge.from_row(row) for row in rows.mappings()]


_SETTLE = (
    update(charge_table)
    .where(charge_table.c.tenant == bindparam("of_tenant"), charge_table.c.id == bindparam("of_id"))
    .values({name: bindparam(f"new_{name}") for name in (*_TOKENS, "cost_usd", "state")})
    .values(reserved_until=null())
)


async def settle(
    tx: Transaction, charge: Charge, state: ChargeState, tokens: Usage, cost: Decimal | None
) -> None:
    """Replace a charge's numbers by the actual ones, or by the estimate that counts in their place."""
    columns = {**columns_of(tokens), "cost_usd": cost, "state": state}
    values = {f"new_{name}": value for name, value in columns.items()}
    await tx.fetch(_SETTLE, {"of_tenant": charge.tenant, "of_id": charge.id, **values})


async def remove(tx: Transaction, charge: Charge) -> None:
    """Delete the reservation of a call that was not made."""
    await tx.execute(delete(charge_table).where(*_is_charge(charge)))


def _is_charge(charge: Charge) -> tuple[ColumnElement[bool], ...]:
    return tenant_filter(charge_table, charge.tenant), charge_table.c.id == charge.id


_PRICES = select(price).where(
    price.c.tenant == bindparam("tenant"),
    (price.c.model == any_(bindparam("models", type_=ARRAY(Text)))) | price.c.model.like("%*"),
)


async def prices(tx: Transaction, models: Collection[str] | None = None) -> list[RowMapping]:
    """Return a tenant's own prices: of all models, or of these and of every pattern, which ends in `*`."""
    if models is not None:
        return await tx.fetch(_PRICES, {"tenant": tx.tenant, "models": list(models)})
    statement = select(price).where(tenant_filter(price, tx.tenant))
    return list((await tx.execute(statement)).mappings())


async def set_price(tx: Transaction, model: str, amounts: Mapping[str, Decimal]) -> None:
    """Set a tenant's own price of a model, in USD per million tokens."""
    values = {"tenant": tx.tenant, "model": model, **amounts}
    statement = upsert(price).values(values)
    columns = {**amounts, "updated_at": func.now()}
    await tx.execute(statement.on_conflict_do_update(index_elements=list(price.primary_key), set_=columns))


async def delete_price(tx: Transaction, model: str) -> bool:
    """Delete a tenant's own price of a model, and return whether there was one."""
    where = (tenant_filter(price, tx.tenant), price.c.model == model)
    return (await tx.execute(delete(price).where(*where))).rowcount > 0
