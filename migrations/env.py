"""Run migrations as the schema's owner, one process at a time, without waiting long for locks.

The role that Loci's processes act as is never the owner, so that row-level security holds for it.
The first migration creates that role if it may, and otherwise expects to find it.
"""

import asyncio

from alembic import context
from sqlalchemy import Connection, text

from migrations.earlier_versions import refuse_earlier_schema
from migrations.schema import metadata
from shared.foundation import config
from shared.infra.postgres import create_engine

_MIGRATION_LOCK = 0x10C1_0000


def _run(connection: Connection) -> None:
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _MIGRATION_LOCK})
    connection.execute(text("SET lock_timeout = '5s'"))
    refuse_earlier_schema(connection)
    connection.commit()
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=False)
    with context.begin_transaction():
        context.run_migrations()


async def _connect() -> None:
    settings = config.load()
    url = config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL")
    engine = create_engine(url, role="", pool_size=1)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_run)
            await connection.commit()
    finally:
        await engine.dispose()


asyncio.run(_connect())
