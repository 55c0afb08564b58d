"""Wait for Postgres, and for the schema that this release needs.

A pod that starts before the migration waits here, in an init container, instead of failing over and
over. A schema newer than this release is good enough: during an upgrade the old release's pods must
still be able to start, and a migration only makes changes that the previous release tolerates.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import asyncpg
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from migrations.earlier_versions import refuse_earlier_schema
from services.commands.migrate import configuration
from shared.foundation import config, errors
from shared.infra.postgres import Postgres, create_engine

_PAUSE = 1.0
_NOT_YET = (errors.Unavailable, DBAPIError, asyncpg.PostgresError, OSError)


def wait_for_schema(within: float) -> None:
    """Return once the schema is at least this release's.

    Raises errors.Unavailable after `within` seconds, and errors.Misconfigured at once if an earlier
    development version made the database, because waiting does not help there.
    """
    asyncio.run(_until(_schema, within))


def wait_for_postgres(within: float) -> None:
    """Return once Postgres answers as the schema's owner; raise errors.Unavailable after `within` seconds."""
    asyncio.run(_until(_owner, within))


async def _until(check: Callable[[config.Settings], Awaitable[None]], within: float) -> None:
    settings, end = config.load(), time.monotonic() + within
    while True:
        try:
            await check(settings)
        except _NOT_YET as error:
            if time.monotonic() + _PAUSE > end:
                reason = str(error) if isinstance(error, errors.Unavailable) else type(error).__name__
                raise errors.Unavailable("postgres", f"not in {within:.0f} seconds: {reason}") from None
            await asyncio.sleep(_PAUSE)
        else:
            return


async def _schema(settings: config.Settings) -> None:
    migrations = ScriptDirectory.from_config(configuration())
    postgres = Postgres(settings)
    try:
        async with postgres.autocommit() as connection:
            await connection.run_sync(refuse_earlier_schema)
            current = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    finally:
        await postgres.close()
    needed = migrations.get_current_head()
    older = {migration.revision for migration in migrations.walk_revisions()} - {needed} | {None}
    if current in older:
        raise errors.Unavailable("the schema", f"it is at {current}, this release needs {needed}")


async def _owner(settings: config.Settings) -> None:
    url = config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL")
    engine = create_engine(url, role="", pool_size=1)
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
    finally:
        await engine.dispose()
