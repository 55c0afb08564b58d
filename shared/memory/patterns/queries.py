"""Every statement on consents and patterns. Functions take the caller's transaction and never commit."""

from datetime import datetime

from sqlalchemy import Text, bindparam, delete, select, text
from sqlalchemy.dialects.postgresql import insert

from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.patterns.pattern import Pattern
from shared.memory.patterns.table import pattern_consent

# The position is compared by its bytes: the collation of a database would order ids by rules of its own.
_PATTERNS = text(
    """
    SELECT p.flow_dact, p.tool_ids, p.outcome, p.count, p.position
    FROM (
        SELECT s.*, concat_ws(' ', s.flow_dact, s.outcome, s.tool_ids::text) COLLATE "C" AS position
        FROM shared_patterns(:flow) s
    ) p
    WHERE p.position >= :first
    ORDER BY p.position
    LIMIT :limit
    """
).bindparams(bindparam("flow", type_=Text), bindparam("first", type_=Text))


async def list_patterns(tx: Transaction, flow: str | None, first: str, limit: int) -> list[Pattern]:
    """Return the patterns that the transaction's tenant may see, from the position `first` on."""
    rows = await tx.execute(_PATTERNS, {"flow": flow, "first": first, "limit": limit})
    return [Pattern.from_row(row) for row in rows.mappings()]


async def consented_at(tx: Transaction) -> datetime | None:
    """Return when a tenant consented, or None."""
    statement = select(pattern_consent.c.created_at).where(tenant_filter(pattern_consent, tx.tenant))
    moment: datetime | None = await tx.scalar(statement)
    return moment


async def consent(tx: Transaction, actor: str) -> None:
    """Note a tenant's consent, unless it stands already."""
    statement = insert(pattern_consent).values(tenant=tx.tenant, actor=actor)
    await tx.execute(statement.on_conflict_do_nothing())


async def withdraw(tx: Transaction) -> None:
    """Withdraw a tenant's consent."""
    await tx.execute(delete(pattern_consent).where(tenant_filter(pattern_consent, tx.tenant)))
