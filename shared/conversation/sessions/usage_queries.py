"""Statements on the totals of a session's reported usage. They use the caller's transaction."""

from collections.abc import Sequence

from sqlalchemy import func, update

from shared.conversation.sessions.table import session as session_table
from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction
from shared.platform.spend import money
from shared.platform.spend.charge import Charge


async def add_charges(tx: Transaction, session_id: str, charges: Sequence[Charge]) -> None:
    """Add charges to the totals of their session, whose row the transaction has locked."""
    costs = [charge.cost_usd for charge in charges if charge.cost_usd is not None]
    totals = session_table.c
    previous_cost = func.coalesce(totals.total_cost_usd, 0)
    columns = {
        "total_input_tokens": totals.total_input_tokens + sum(charge.input_tokens for charge in charges),
        "total_output_tokens": totals.total_output_tokens + sum(charge.output_tokens for charge in charges),
        "total_cached_tokens": totals.total_cached_tokens + sum(charge.cached_tokens for charge in charges),
        "total_cost_usd": previous_cost + money.total(costs) if costs else totals.total_cost_usd,
        "unpriced_charges": totals.unpriced_charges + len(charges) - len(costs),
        "spend_updated_at": func.now() if charges else totals.spend_updated_at,
    }
    where = (tenant_filter(session_table, tx.tenant), session_table.c.id == session_id)
    await tx.execute(update(session_table).where(*where).values(columns))
