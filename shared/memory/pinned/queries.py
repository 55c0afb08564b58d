"""Every statement on pinned texts.

Functions take the caller's transaction and never commit. A context reads its texts together with what it
was shown before (`shared/context/queries.py`).
"""

from datetime import datetime

import uuid_utils
from sqlalchemy import ColumnElement, Text, and_, bindparam, delete, func, not_, select, update
from sqlalchemy.dialects.postgresql import insert

from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import (
    NEXT_VERSION,
    advisory_lock_key,
    exact_scope,
    keyset_after,
    tenant_filter,
    visible_scope,
)
from shared.infra.transaction import Transaction
from shared.memory.pinned.pinned_text import CoreText, PinnedText
from shared.memory.pinned.table import pinned_text


def _is_named(scope: Scope, *names: str) -> ColumnElement[bool]:
    return and_(exact_scope(pinned_text, scope), pinned_text.c.name.in_(names))


async def lock_agent(tx: Transaction, scope: Scope) -> None:
    """Lock the pinned texts of an agent and of all its users, so that nobody else adds to them.

    The limit is on texts of several rows together, some of which don't exist yet.
    """
    key = advisory_lock_key("pinned", scope.tenant, scope.agent_id)
    await tx.execute(select(func.pg_advisory_xact_lock(key)))


async def find(tx: Transaction, scope: Scope, name: str) -> PinnedText | None:
    """Return the text that stands under a name in exactly this scope, or None."""
    rows = (await tx.execute(select(pinned_text).where(_is_named(scope, name)))).mappings()
    return next((PinnedText.from_row(row) for row in rows), None)


async def find_visible(tx: Transaction, scope: Scope, name: str) -> PinnedText | None:
    """Return the text that a scope sees under a name: the user's own before the agent's. Or None."""
    where = (visible_scope(pinned_text, scope), pinned_text.c.name == name)
    own_first = select(pinned_text).where(*where).order_by(pinned_text.c.user_id.nulls_last()).limit(1)
    row = (await tx.execute(own_first)).mappings().one_or_none()
    return None if row is None else PinnedText.from_row(row)


async def list_page(
    tx: Transaction, scope: Scope, limit: int, after: tuple[datetime, str] | None
) -> list[PinnedText]:
    """Return the texts that a scope sees, oldest first, from the position (created_at, id) `after` on."""
    conditions = [visible_scope(pinned_text, scope)]
    if after is not None:
        created_at, text_id = after
        keys = ((pinned_text.c.created_at, created_at, False), (pinned_text.c.id, text_id, False))
        conditions.append(keyset_after(*keys))
    ordered = select(pinned_text).where(*conditions).order_by(pinned_text.c.created_at, pinned_text.c.id)
    return [PinnedText.from_row(row) for row in (await tx.execute(ordered.limit(limit))).mappings()]


async def count_other_characters(tx: Transaction, scope: Scope, *names: str) -> int:
    """Return how many characters stand beside the texts of these names in the largest context with them.

    A user's text is shown beside the agent's and the user's. The agent's own is shown to every user, so
    the user with the most counts.
    """
    length = func.sum(func.char_length(pinned_text.c.content))
    of_agent = (tenant_filter(pinned_text, scope.tenant), pinned_text.c.agent_id == scope.agent_id)
    others = (*of_agent, not_(_is_named(scope, *names)))
    if scope.user_id is not None:
        statement = select(length).where(*others, visible_scope(pinned_text, scope))
        return int(await tx.scalar(statement) or 0)
    by_user = select(pinned_text.c.user_id, length.label("length")).where(*others)
    rows = list(await tx.execute(by_user.group_by(pinned_text.c.user_id)))
    common = sum(row.length for row in rows if row.user_id is None)
    return int(common + max((row.length for row in rows if row.user_id is not None), default=0))


async def insert_text(tx: Transaction, scope: Scope, name: str, content: str, origin: Origin) -> PinnedText:
    """Insert a text under a name that is free, under `lock_agent`."""
    values = prepared.scope_values(scope)
    columns = {"id": str(uuid_utils.uuid7()), "name": name, "content": content, "version": NEXT_VERSION}
    row = values | columns | origin.columns()
    statement = insert(pinned_text).values(row).returning(pinned_text)
    return PinnedText.from_row((await tx.execute(statement)).mappings().one())


async def replace(tx: Transaction, pinned: PinnedText, content: str, origin: Origin) -> PinnedText:
    """Replace content and origin of a text, under `lock_agent`. Its place in contexts stays."""
    version = func.greatest(pinned_text.c.version + 1, NEXT_VERSION)
    is_text = (tenant_filter(pinned_text, pinned.tenant), pinned_text.c.id == pinned.id)
    statement = update(pinned_text).where(*is_text)
    values = {"content": content, "version": version, "updated_at": func.now()} | origin.columns()
    rows = await tx.execute(statement.values(values).returning(pinned_text))
    return PinnedText.from_row(rows.mappings().one())


async def remove(tx: Transaction, pinned: PinnedText) -> None:
    """Delete a text."""
    is_text = (tenant_filter(pinned_text, pinned.tenant), pinned_text.c.id == pinned.id)
    await tx.execute(delete(pinned_text).where(*is_text))


_LOCK_CORE = (
    select(pinned_text.c.id, pinned_text.c.name, pinned_text.c.content)
    .where(
        pinned_text.c.tenant == bindparam("tenant"),
        pinned_text.c.agent_id == bindparam("agent_id"),
        pinned_text.c.user_id.is_(None) | (pinned_text.c.user_id == bindparam("user_id", type_=Text)),
    )
    .order_by(pinned_text.c.user_id.is_not(None), pinned_text.c.id)
    .with_for_update(read=True)
)


async def lock_core(tx: Transaction, scope: Scope) -> list[CoreText]:
    """Return the texts that contexts of a scope show, and keep them from being changed until the end.

    A transaction that stores a copy of them calls this.
    """
    values = prepared.scope_values(scope)
    rows = await tx.fetch(_LOCK_CORE, values)
    return [CoreText(row["id"], row["name"], row["content"]) for row in rows]
