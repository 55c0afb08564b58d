"""Every statement on promotions. Functions take the caller's transaction and never commit."""

from collections.abc import Sequence
from datetime import datetime

import uuid_utils
from sqlalchemy import func, insert, select, update

from shared.conversation.sessions.session import Session
from shared.dreams.promotion.promotion import (
    Promotion,
    PromotionResult,
    PromotionState,
    PromotionTarget,
    PromotionTrigger,
)
from shared.dreams.promotion.table import promotion as promotion_table
from shared.infra.postgres import keyset_after, tenant_filter
from shared.infra.transaction import Transaction


async def add(
    tx: Transaction,
    session: Session,
    actor: str,
    trigger: PromotionTrigger,
    target: PromotionTarget,
    *,
    reason: str | None = None,
    report_id: str | None = None,
) -> Promotion:
    """Insert a pending promotion of a locked session."""
    values = {
        "tenant": session.tenant,
        "id": str(uuid_utils.uuid7()),
        "session_id": session.id,
        "actor": actor,
        "trigger": trigger,
        "target": target,
        "reason": reason,
        "report_id": report_id,
        "state": PromotionState.PENDING,
    }
    statement = insert(promotion_table).values(values).returning(promotion_table)
    return Promotion.from_row((await tx.execute(statement)).mappings().one())


async def find(tx: Transaction, promotion_id: str) -> Promotion | None:
    """Return a promotion, or None."""
    where = (tenant_filter(promotion_table, tx.tenant), promotion_table.c.id == promotion_id)
    row = (await tx.execute(select(promotion_table).where(*where))).mappings().one_or_none()
    return None if row is None else Promotion.from_row(row)


async def finish(tx: Transaction, promotion: Promotion, results: Sequence[PromotionResult]) -> Promotion:
    """Store what became of the snippets."""
    where = (tenant_filter(promotion_table, promotion.tenant), promotion_table.c.id == promotion.id)
    values = {
        "state": PromotionState.DONE,
        "results": [result.model_dump(mode="json") for result in results],
        "finished_at": func.now(),
    }
    statement = update(promotion_table).where(*where).values(values).returning(promotion_table)
    return Promotion.from_row((await tx.execute(statement)).mappings().one())


async def list_page(
    tx: Transaction, session: Session, limit: int, after: tuple[datetime, str] | None
) -> list[Promotion]:
    """Return the promotions of a session, newest first, from the position (created_at, id) `after` on."""
    conditions = [
        tenant_filter(promotion_table, session.tenant),
        promotion_table.c.session_id == session.id,
    ]
    if after is not None:
        created_at, promotion_id = after
        keys = ((promotion_table.c.created_at, created_at, True), (promotion_table.c.id, promotion_id, False))
        conditions.append(keyset_after(*keys))
    newest_first = (promotion_table.c.created_at.desc(), promotion_table.c.id)
    statement = select(promotion_table).where(*conditions).order_by(*newest_first).limit(limit)
    return [Promotion.from_row(row) for row in (await tx.execute(statement)).mappings()]
