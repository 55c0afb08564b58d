"""Statements on the rows of a tenant, as no caller could run them."""

from typing import Any

from sqlalchemy import text

from tests.conftest import Gateway


async def sql(gateway: Gateway, statement: str, **values: Any) -> list[Any]:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        result = await tx.execute(text(statement), values)
        return list(result) if result.returns_rows else []
