"""Every statement on the directives that tenants have set. Rows are inserted and never updated."""

from datetime import datetime

from sqlalchemy import bindparam, func, insert, literal_column, select

from shared.infra.postgres import advisory_lock_key, tenant_filter
from shared.infra.transaction import Transaction
from shared.platform.directives.directive import DirectiveVersion
from shared.platform.directives.table import directive

_NEWEST = (
    select(directive)
    .where(directive.c.tenant == bindparam("tenant"), directive.c.name == bindparam("name"))
    .order_by(directive.c.version.desc())
    .limit(literal_column("1"))
)


async def newest(tx: Transaction, name: str) -> DirectiveVersion | None:
    """Return the version that a tenant set last, blank or not; None if it never set any."""
    row = await tx.fetch_one(_NEWEST, {"tenant": tx.tenant, "name": name})
    return None if row is None else DirectiveVersion.from_row(row)


async def page(
    tx: Transaction, name: str, limit: int, after: tuple[datetime, str] | None = None
) -> list[DirectiveVersion]:
    """Return a tenant's versions of a directive, the newest first.

    `after` begins with `created_at` of the last version seen. Versions are inserted under `lock`, so
    no two of them share it.
    """
    conditions = [tenant_filter(directive, tx.tenant), directive.c.name == name]
    if after is not None:
        conditions.append(directive.c.created_at < after[0])
    statement = select(directive).where(*conditions).order_by(directive.c.version.desc()).limit(limit)
    return [DirectiveVersion.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def lock(tx: Transaction, name: str) -> None:
    """Lock this directive of this tenant until the transaction ends, so that nobody else can set it."""
    key = advisory_lock_key("directive", tx.tenant, name)
    await tx.execute(select(func.pg_advisory_xact_lock(key)))


async def add(tx: Transaction, name: str, version: int, text: str, actor: str) -> DirectiveVersion:
    """Insert a version under `lock` and return it."""
    values = {"tenant": tx.tenant, "name": name, "version": version, "text": text, "actor": actor}
    statement = insert(directive).values(values).returning(directive)
    return DirectiveVersion.from_row((await tx.execute(statement)).mappings().one())
