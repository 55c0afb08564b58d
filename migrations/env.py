"""Run migrations as the schema's owner, one process at a time, without waiting long for locks.

The role that Loci's processes act as must exist and be ours to grant before the first step, and
is never the owner, so that row-level security holds for it.
"""

import asyncio

from alembic import context
from sqlalchemy import Connection, text

from migrations.schema import metadata
from shared.foundation import config
from shared.infra.postgres import create_engine

_ONE_AT_A_TIME = 0x10C1_0000


def _run(connection: Connection) -> None:
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _ONE_AT_A_TIME})
    connection.execute(text("SET lock_timeout = '5s'"))
    connection.commit()
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=False)
    with context.begin_transaction():
        context.run_migrations()


async def _connect() -> None:
    settings = config.load()
    url = config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL")
    engine = create_engine(url, role="", pool_size=1)
    async with engine.connect() as connection:
        await connection.run_sync(_run)
        await connection.commit()
    await engine.dispose()


asyncio.run(_connect())
