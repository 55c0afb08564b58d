"""What categories and tags there are, with counts (LT15)."""

from typing import Any

from sqlalchemy import func, select

from shared.longterm.criteria import Criteria
from shared.longterm.table import entry
from shared.resources import Resources
from shared.scope import Scope


async def categories(resources: Resources, scope: Scope) -> list[dict[str, Any]]:
    """Return {category, count, total} sorted; `total` counts what lies beneath it too.

    Every step of the path is listed, so the rows read as a tree by `/`.
    """
    statement = (
        select(entry.c.category, func.count().label("entries"))
        .where(*Criteria().for_rows(scope), entry.c.category.is_not(None))
        .group_by(entry.c.category)
    )
    async with resources.postgres.tenant(scope.tenant) as connection:
        counts = {row.category: row.entries for row in await connection.execute(statement)}
    totals: dict[str, int] = {}
    for category, count in counts.items():
        parts = category.split("/")
        for end in range(1, len(parts) + 1):
            step = "/".join(parts[:end])
            totals[step] = totals.get(step, 0) + count
    return [
        {"category": name, "count": counts.get(name, 0), "total": totals[name]} for name in sorted(totals)
    ]


async def tags(resources: Resources, scope: Scope) -> list[dict[str, Any]]:
    """Return {tag, count} sorted by tag."""
    each = select(func.unnest(entry.c.tags).label("tag")).where(*Criteria().for_rows(scope)).subquery()
    statement = select(each.c.tag, func.count().label("entries")).group_by(each.c.tag).order_by(each.c.tag)
    async with resources.postgres.tenant(scope.tenant) as connection:
        return [{"tag": row.tag, "count": row.entries} for row in await connection.execute(statement)]
