"""Counters that every process shares and that outlive it, for `/metrics`."""

from collections.abc import Mapping

from sqlalchemy import RowMapping, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.work.table import tally


async def count(connection: AsyncConnection, name: str, by: Mapping[str, float]) -> None:
    """Add to counters that every process shares; `by` maps a label to what to add."""
    for label, amount in sorted(by.items()):
        if amount:
            await connection.execute(_COUNT, {"name": name, "label": label, "amount": amount})


_COUNT = text(
    "INSERT INTO tally (name, label, total) VALUES (:name, :label, :amount)"
    " ON CONFLICT (name, label) DO UPDATE SET total = tally.total + excluded.total"
)


async def every(connection: AsyncConnection) -> list[RowMapping]:
    """Return every shared counter as {name, label, total}."""
    return list((await connection.execute(select(tally).order_by(tally.c.name, tally.c.label))).mappings())
